"""`tamis verify`: compare the alarms of Tamis with those of a plain join by DuckDB."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.common.output import write, write_json
from tamis.cli.common.recordings import files_of, read_recordings, recording_options
from tamis.cli.common.sql_file import statements_of
from tamis.errors import InputError
from tamis.offline.verify import text, verify
from tamis.printable import printable
from tamis.recordings.files import Format
from tamis.recordings.times import TimeUnit


@click.command(
    epilog="""\b
Examples:
  tamis verify demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv
  tamis verify demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv \\
    --json
"""
)
@recording_options
@click.option("--json", "as_json", is_flag=True, help="Print only one JSON document.")
def command(
    source: str,
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    form: Format | None,
    as_arrived: bool,
    as_json: bool,
) -> None:
    """Compare the alarms of each alert with those of a plain join over all readings.

    DuckDB runs the plain join. Tamis retains tuples for all alerts of the file together, as in a fleet.

    An alarm of the plain join is missed if Tamis has no alarm of the same key (and window) with every tuple
    within its stream's omission interval. With the option within, it is missed if it lies in a span of that
    length in which Tamis has no alarm of the key. An alarm is extra if the plain join doesn't have it or has
    it less often, or if it has another value in a column of SELECT. Alarms with late tuples, and alarms for
    which rounding decides (at the threshold), are counted separately; the readings that made others late are
    named.

    Columns of similar() are computed directly from every window. Where Tamis has other values than that, an
    alarm is missed or extra. Alarms for which rounding decides whether a window matches are at the threshold.

    For aggregates of windows, Tamis compares all rows over tuples that are not late. If edges send partial
    aggregates of these, the line says how many rows and records. The tuples then go through the rules of
    edges: several shards at random, which cut, crash and start again at random moments. Rows in which
    rounding decides HAVING or a value, such as round(avg(x), 2), are at the threshold. For queries without
    time or in application time, it compares all rows and how often each occurs. For aggregates of these
    queries, it compares the last row of each group, and no row may repeat the one before it. Of queries over
    rows of aggregates, it compares each query over the rows that the queries before it gave.

    The exit code is 0 if nothing is missed or extra, 1 if something is or an alert is refused, and 2 if the
    input is wrong.
    """
    catalog, _ = statements_of(source)
    alerts = list(catalog.alerts.values())
    if not alerts:
        raise InputError("no alert to verify", where=source, hint="add a CREATE ALERT statement")
    files = files_of(inputs, source, catalog)
    recordings = read_recordings(catalog, alerts, files, form, unit, as_arrived=as_arrived)
    verdicts = verify(catalog, recordings, _progress)
    if as_json:
        write_json([v.to_json() for v in verdicts])
    else:
        write(text(verdicts))
    sys.exit(0 if all(v.same for v in verdicts) else 1)


def _progress(what: str) -> AbstractContextManager[object]:
    console = Console(stderr=True)
    return console.status(Text(printable(what))) if console.is_terminal else nullcontext()

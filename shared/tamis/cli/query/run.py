"""`tamis run`: evaluate a query over recordings, with the evaluators of the fleet."""

from __future__ import annotations

import click

from tamis.cli.common.output import say
from tamis.cli.common.recordings import files_of, read_recordings, recording_options
from tamis.cli.common.sql_file import statements_of
from tamis.offline.run import chosen_query, rows_of
from tamis.offline.wording import COMMAND
from tamis.recordings.files import Format, format_of, write_table
from tamis.recordings.times import TimeUnit


@click.command(
    epilog="""\b
Examples:
  tamis run demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv \\
    -o alarms.csv
  cat demo/first/air.csv | tamis run demo/first/alerts.sql --query condensation --format csv \\
    --input air=- --input surface=demo/first/surface.csv
"""
)
@recording_options
@click.option("--query", metavar="NAME", help="The alert or derived stream, if the file has several.")
@click.option("-o", "--output", default="-", show_default=True, help="The file for the rows.")
def command(
    source: str,
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    form: Format | None,
    as_arrived: bool,
    query: str | None,
    output: str,
) -> None:
    """Evaluate an alert or a derived stream over recordings, with the filters and the omission of an edge.

    Each result is one row with the columns of SELECT. Rows are in the order of the event time of their latest
    tuple; aggregates of windows are in the order of the windows' ends. Over streams without time, rows are in
    the order of the tuples: recordings with a column _order are merged by it, others are read one after the
    other. Tables are read from their paths.

    Times are written in the form in which they were read: text in ISO 8601, or numbers of their unit. Over
    streams without time, all text is in UTC. Differences of times are in microseconds. Standard output is
    CSV, unless --format is given.

    The exit code is 0 when done, 1 if the query is refused, and 2 if the input is wrong.
    """
    output_form = format_of(
        output, form or "csv" if output == "-" else form
    )  # a mistake here must be found before the work
    catalog, _ = statements_of(source)
    chosen = chosen_query(catalog, query, source, COMMAND)
    files = files_of(inputs, source, catalog)
    recordings = read_recordings(catalog, [chosen], files, form, unit, as_arrived=as_arrived)
    found = rows_of(chosen, catalog, recordings, wording=COMMAND, notify=say)
    write_table(found, output, output_form)

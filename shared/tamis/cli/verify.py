"""`tamis verify`: the same alarms with and without Tamis?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import click
import orjson
from rich.console import Console

from tamis.cli._recorded import files_of, read_recordings, recorded
from tamis.cli._sql_file import statements_of
from tamis.errors import InputError
from tamis.evaluation.replay import replay
from tamis.evaluation.standing import played
from tamis.planning.application_time.ground import ground
from tamis.planning.build import first_plan
from tamis.planning.standing import is_standing, judged
from tamis.query.model import AlertDef, Catalog
from tamis.recordings import Format, Recording
from tamis.verification import (
    Alarms,
    Verdict,
    compare,
    compare_grouped,
    compare_standing,
    keyed,
    plain_join,
)


@click.command(
    epilog="""\b
Examples:
  tamis verify demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv
  tamis verify demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv \\
    --json
"""
)
@recorded
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def command(source: str, inputs: tuple[str, ...], form: Format | None, as_json: bool) -> None:
    """Compare each alert's alarms with those of the plain join over the unfiltered recordings.

    What Tamis retains is that of all alerts of the file together, as in a fleet. The plain join is run by
    DuckDB. Missed: alarms of the plain join without an alarm of the same key (and window) in which every
    tuple lies within its stream's omission interval. Extra: alarms that the plain join does not have. Alarms
    with late tuples and those at the threshold up to rounding are counted apart. Of aggregates of windows
    all rows are compared, over the tuples that came in time; of queries without time or in application time
    all rows, each as often as it arises, and of groups the last ones. Exits with 0 if nothing is missed or
    extra, 1 if something is or an alert is refused, 2 if the input is wrong.
    """
    catalog, _ = statements_of(source)
    alerts = list(catalog.alerts.values())
    if not alerts:
        raise InputError("no alert to verify", where=source, hint="add a CREATE ALERT statement")
    recordings = read_recordings(catalog, alerts, files_of(inputs, source, catalog), form)
    verdicts = verify(catalog, recordings)
    if as_json:
        click.echo(orjson.dumps([v.to_json() for v in verdicts], option=orjson.OPT_INDENT_2))
    else:
        width = max(len(v.query) for v in verdicts)
        for verdict in verdicts:
            click.echo(_line(verdict, width))
    sys.exit(0 if all(v.same for v in verdicts) else 1)


def verify(catalog: Catalog, recordings: dict[str, Recording]) -> Sequence[Verdict]:
    """The verdict on every alert, in the order of the catalogue; progress goes to a terminal's stderr.

    Raises NotAcceptedError where an alert is not accepted.
    """
    standing = [name for name, alert in catalog.alerts.items() if is_standing(alert, catalog)]
    joins = {name: alert for name, alert in catalog.alerts.items() if name not in standing}
    plan = first_plan(Catalog(catalog.streams, {}, catalog.functions, joins))  # what is paused, too
    definitions = {definition.alert: definition for definition in plan.definitions}
    for name in standing:
        judged(catalog.alerts[name], catalog)
    verdicts = []
    for alert in catalog.alerts.values():
        if alert.name in standing:
            verdicts.append(_standing(alert, catalog, recordings))
            continue
        definition = definitions[alert.name]
        with _progress(f"{alert.name}: the plain join"):
            reference = plain_join(alert.query, recordings)
        with _progress(f"{alert.name}: Tamis"):
            ours = replay(definition, plan.streams, recordings)
        with _progress(f"{alert.name}: comparing {len(reference)} and {len(ours)} alarms"):
            verdict = compare(
                alert.name,
                alert.query,
                definition=definition,
                recordings=recordings,
                reference=reference,
                alarms=Alarms(ours.rows, starts=ours.starts),
                retained=ours.retained,
            )
        verdicts.append(verdict)
    return verdicts


def _standing(alert: AlertDef, catalog: Catalog, recordings: dict[str, Recording]) -> Verdict:
    """The verdict on a query that keeps synopses."""
    read = {
        source.stream: recordings[source.stream]
        for source in alert.query.sources
        if source.stream in recordings
    }
    query = alert.query if alert.query.grouping is None else keyed(alert.query)
    with _progress(f"{alert.name}: Tamis"):
        rows = played(query, catalog, read).rows
    with _progress(f"{alert.name}: comparing {len(rows)} rows"):
        if query.window is not None:
            (recording,) = read.values()
            return compare_grouped(alert.name, alert.query, recording, rows.columns)
        given = {**ground(alert.query, catalog).relations, **read}
        return compare_standing(alert.name, alert.query, given, rows.columns)


def _progress(what: str) -> AbstractContextManager[object]:
    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def _line(verdict: Verdict, width: int) -> str:
    share = 100 * verdict.retained / max(1, verdict.tuples)
    apart = f", {verdict.late} late" if verdict.late else ""
    apart += f", {verdict.at_threshold} at the threshold" if verdict.at_threshold else ""
    return (
        f"{verdict.query:<{width}}  {verdict.tuples} tuples, {verdict.retained} retained ({share:.1f} %), "
        f"{verdict.reference_alarms} alarms in the plain join{apart}, {verdict.alarms} with Tamis: "
        f"missed {verdict.missed}, extra {verdict.extra}"
    )

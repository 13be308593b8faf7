"""`tamis verify`: compare the alarms of Tamis with those of a plain join by DuckDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import click
import orjson
from rich.console import Console

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.cli._recordings import files_of, read_recordings, recording_options, since_begin
from tamis.cli._sql_file import statements_of
from tamis.errors import InputError
from tamis.evaluation.replay import replay
from tamis.evaluation.standing.recording_runs import run_recordings
from tamis.plan.model import Definition
from tamis.planning.backfill_streams import live
from tamis.planning.build import first_plan
from tamis.planning.explanations.measured import measured
from tamis.planning.queries.standing_queries import is_standing, judged
from tamis.query.model import AlertDef, Catalog, Query
from tamis.recordings.files import Format
from tamis.recordings.implausible_times import date
from tamis.recordings.time_units import TimeUnit
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys
from tamis.verification.compare import Alarms, Lateness, Verdict, compare
from tamis.verification.existence import existing_rows
from tamis.verification.nested_queries import compare_nested
from tamis.verification.reference import Reference, plain_join
from tamis.verification.standing import compare_standing
from tamis.verification.watched_columns import checked_recording


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
    source: str, inputs: tuple[str, ...], unit: TimeUnit | None, form: Format | None, as_json: bool
) -> None:
    """Compare the alarms of each alert with those of a plain join over all readings.

    DuckDB runs the plain join. Tamis retains tuples for all alerts of the file together, as in a fleet.

    An alarm of the plain join is missed if Tamis has no alarm of the same key (and window) with every tuple
    within its stream's omission interval. An alarm is extra if the plain join doesn't have it. Alarms with
    late tuples, and alarms for which rounding decides (at the threshold), are counted separately; the
    readings that made others late are named.

    Columns of similar() are computed directly from every window. Where Tamis has other values than that, an
    alarm is missed or extra. Alarms for which rounding decides whether a window matches are at the threshold.

    For aggregates of windows, Tamis compares all rows over tuples that are not late. Rows in which rounding
    decides HAVING or a value, such as round(avg(x), 2), are at the threshold. For queries without
    time or in application time, it compares all rows and how often each occurs. For aggregates of these
    queries, it compares the last row of each group. Of queries over rows of aggregates, it compares each
    query over the rows that the queries before it gave.

    The exit code is 0 if nothing is missed or extra, 1 if something is or an alert is refused, and 2 if the
    input is wrong.
    """
    catalog, _ = statements_of(source)
    alerts = list(catalog.alerts.values())
    if not alerts:
        raise InputError("no alert to verify", where=source, hint="add a CREATE ALERT statement")
    recordings = read_recordings(catalog, alerts, files_of(inputs, source, catalog), form, unit)
    verdicts = verify(catalog, recordings)
    if as_json:
        click.echo(orjson.dumps([v.to_json() for v in verdicts], option=orjson.OPT_INDENT_2))
    else:
        width = max(len(v.query) for v in verdicts)
        for verdict in verdicts:
            click.echo(_line(verdict, width))
        for line in _lateness(verdicts):
            click.echo(line)
    sys.exit(0 if all(v.same for v in verdicts) else 1)


def verify(catalog: Catalog, recordings: dict[str, Recording]) -> Sequence[Verdict]:
    """The verdict on every alert, in the order of the catalogue; a terminal shows the progress.

    Raises NotAcceptedError if an alert is not accepted.
    """
    standing = [name for name, alert in catalog.alerts.items() if is_standing(alert, catalog)]
    joins = {name: live(alert) for name, alert in catalog.alerts.items() if name not in standing}
    # Paused alerts are verified, too.
    plan = first_plan(Catalog(catalog.streams, {}, catalog.functions, joins, results=catalog.results))
    definitions = {definition.alert: definition for definition in plan.definitions}
    for name in standing:
        judged(catalog.alerts[name], catalog)
    everything = recordings
    with _progress("columns over earlier readings: computing every window and frame"):
        all_checked = {name: checked_recording(one) for name, one in recordings.items()}
    verdicts = []
    for alert in catalog.alerts.values():
        recordings, checked = since_begin(alert, everything), since_begin(alert, all_checked)
        if alert.name in standing:
            verdict = _standing(alert, catalog, recordings, checked)
            verdicts.append(with_lateness(verdict, alert, recordings))
            continue
        definition = definitions[alert.name]
        with _progress(f"{alert.name}: the plain join"):
            reference = _reference(alert.query, definition, checked)
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
                checked=checked,
            )
        # If no alarm of the join has late tuples, lateness has cost no alarm.
        verdicts.append(with_lateness(verdict, alert, recordings) if verdict.late else verdict)
    return verdicts


def _reference(query: Query, definition: Definition, checked: Mapping[str, Recording]) -> Reference:
    """The alarms of the plain join. Under EXISTS, rounding of values that edges compare can decide, too."""
    if not query.exists and not query.absences:
        return plain_join(query, checked)
    margins = (*definition.margins, *(one for absence in definition.absences for one in absence.margins))
    return existing_rows(query, checked, margins)


def with_lateness(verdict: Verdict, alert: AlertDef, recordings: Mapping[str, Recording]) -> Verdict:
    """The verdict, with the readings in the alert's streams that made other readings late."""
    streams = dict.fromkeys(source.stream for source in alert.query.sources if source.stream in recordings)
    found = dict.fromkeys(
        Lateness(recordings[stream].stream.shown_name, one.where, date(one.time), one.ahead / 1e6, one.late)
        for stream in streams
        for one in recordings[stream].late_causes
    )
    return replace(verdict, lateness=tuple(found))


def _standing(
    alert: AlertDef,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    checked: Mapping[str, Recording],
) -> Verdict:
    """The verdict on a standing query."""
    streams = [source.stream for source in alert.query.sources if source.stream in recordings]
    read = {stream: recordings[stream] for stream in streams}
    reference = {stream: checked[stream] for stream in streams}
    if alert.query.nested is not None:
        with _progress(f"{alert.name}: Tamis and DuckDB, one query after the other"):
            return compare_nested(alert.name, alert.query, catalog, read, reference)
    query = alert.query if alert.query.grouping is None else with_group_keys(alert.query)
    with _progress(f"{alert.name}: Tamis"):
        rows = run_recordings(query, catalog, read).rows
    with _progress(f"{alert.name}: comparing {len(rows)} rows"):
        given = {**query_inputs(alert.query, catalog).relations, **reference}
        compare_rows = compare_windowed_groups if query.windowed else compare_standing
        verdict = compare_rows(alert.name, alert.query, given, rows.columns)
    dropped = sum(one.dropped for one in measured(alert, catalog, recordings).values())
    return replace(verdict, retained=verdict.tuples - dropped)


def _progress(what: str) -> AbstractContextManager[object]:
    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def _lateness(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Warnings: the alarms that may be missed because of late readings, and the readings that moved the
    watermark.
    """
    some = [verdict for verdict in verdicts if verdict.lateness]
    for verdict in some:
        count = f"{verdict.late} of {verdict.reference_alarms}" if verdict.late else "some"
        yield (
            f"warning: lateness, not omission, may take {count} alarms of {verdict.query}: a fleet joins late"
            " readings only as far as its state still holds them, and windows leave them out"
        )
    for one in dict.fromkeys(one for verdict in some for one in verdict.lateness):
        yield (
            f"  stream {one.stream}: {one.where}: {one.time} is {_span(one.ahead_seconds)} ahead of the"
            f" readings behind it, of which {one.late} {'is' if one.late == 1 else 'are'} late"
        )


def _span(length: float) -> str:
    days = length / 86_400
    return f"{days:,.0f} days" if days >= 2 else f"{length:g} s"


def _line(verdict: Verdict, width: int) -> str:
    share = 100 * verdict.retained / max(1, verdict.tuples)
    apart = f", {verdict.late} late" if verdict.late else ""
    apart += f", {verdict.at_threshold} at the threshold" if verdict.at_threshold else ""
    return (
        f"{verdict.query:<{width}}  {verdict.tuples} tuples, {verdict.retained} retained ({share:.1f} %), "
        f"{verdict.reference_alarms} alarms in the plain join{apart}, {verdict.alarms} with Tamis: "
        f"missed {verdict.missed}, extra {verdict.extra}"
    )

"""Verification: the alarms of Tamis compared with those of a plain join by DuckDB, alert by alert."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.offline.recordings import since_begin
from tamis.offline.standing_runs import recordings_of, run_query, run_query_by_cuts
from tamis.operators.contract import Rows
from tamis.operators.recording_runs import recorded
from tamis.operators.time_join.replay import replay
from tamis.persistent.dicts import PersistentDict
from tamis.plan.model import Definition, TopicPlan
from tamis.planning.build import first_plan
from tamis.planning.explanations.measured import measured, partial_topic
from tamis.planning.queries.standing_queries import is_standing, judged
from tamis.planning.stream_plans import live
from tamis.printable import printable
from tamis.query.model import (
    AlertDef,
    Catalog,
    GroupByQuery,
    JoinByTime,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessQuery,
    WindowGroupBy,
)
from tamis.recordings.times import date
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys
from tamis.verification.compare import Alarms, Lateness, Verdict, compare
from tamis.verification.reference import Reference, existing_rows, plain_join
from tamis.verification.standing import compare_standing
from tamis.verification.watched_columns import checked_recording

Progress = Callable[[str], AbstractContextManager[object]]
"""Shows what is being done, while its context is open."""


def text(verdicts: Sequence[Verdict]) -> str:
    """A line for each verdict, and the readings that made others late."""
    width = max((len(verdict.query) for verdict in verdicts), default=0)
    lines = [*(_verdict_line(verdict, width) for verdict in verdicts), *_lateness(verdicts)]
    return "\n".join(map(printable, lines))


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


def _verdict_line(verdict: Verdict, width: int) -> str:
    share = 100 * verdict.retained / max(1, verdict.tuples)
    apart = f", {verdict.late} late" if verdict.late else ""
    apart += f", {verdict.at_threshold} at the threshold" if verdict.at_threshold else ""
    sent = ""
    if verdict.partial_rows is not None:
        sent = f" as {verdict.partial_rows} rows of partial aggregates in {verdict.partial_records} records"
    return (
        f"{verdict.query:<{width}}  {verdict.tuples} tuples, {verdict.retained} retained ({share:.1f} %)"
        f"{sent}, {verdict.reference_alarms} alarms in the plain join{apart}, {verdict.alarms} with Tamis: "
        f"missed {verdict.missed}, extra {verdict.extra}"
    )


def verify(
    catalog: Catalog, recordings: dict[str, Recording], progress: Progress = nullcontext
) -> Sequence[Verdict]:
    """The verdict on every alert, in the order of the catalogue.

    Raises NotAcceptedError if an alert is not accepted.
    """
    standing = [name for name, alert in catalog.alerts.items() if is_standing(alert, catalog)]
    joins = {name: live(alert) for name, alert in catalog.alerts.items() if name not in standing}
    # Paused alerts are verified, too.
    plan = first_plan(
        Catalog(catalog.streams, {}, catalog.functions, PersistentDict(joins), results=catalog.results)
    )
    definitions = {definition.alert: definition for definition in plan.definitions}
    for name in standing:
        judged(catalog.alerts[name], catalog)
    everything = recordings
    with progress("columns over earlier readings: computing every window and frame"):
        all_checked = {name: checked_recording(one) for name, one in recordings.items()}
    verdicts = []
    for alert in catalog.alerts.values():
        recordings, checked = since_begin(alert, everything), since_begin(alert, all_checked)
        if alert.name in standing:
            verdict = _standing(alert, catalog, recordings, checked, progress)
            # Late readings count, too; but they have no values of window functions and patterns.
            counted = isinstance(alert.query, TimelessQuery) and not alert.query.watched
            verdicts.append(verdict if counted else with_lateness(verdict, alert, recordings))
            continue
        definition = definitions[alert.name]
        with progress(f"{alert.name}: the plain join"):
            reference = _reference(alert.query, definition, checked)
        with progress(f"{alert.name}: Tamis"):
            ours = replay(definition, plan.streams, recordings)
        with progress(f"{alert.name}: comparing {len(reference)} and {len(ours)} alarms"):
            verdict = compare(
                alert.name,
                alert.query,
                definition=definition,
                recordings=recordings,
                reference=reference,
                alarms=Alarms(ours.rows, starts=ours.starts, selected=ours.selected),
                retained=ours.retained,
                checked=checked,
            )
        # If no alarm of the join has late tuples, lateness has cost no alarm.
        verdicts.append(with_lateness(verdict, alert, recordings) if verdict.late else verdict)
    return verdicts


def _reference(query: Query, definition: Definition, checked: Mapping[str, Recording]) -> Reference:
    """The alarms of the plain join. Under EXISTS, rounding of values that edges compare can decide, too."""
    if not isinstance(query, JoinByTime) or not (query.exists or query.absences):
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
    progress: Progress,
) -> Verdict:
    """The verdict on a standing query."""
    streams = [source.stream for source in alert.query.sources if source.stream in recordings]
    read = {stream: recordings[stream] for stream in streams}
    reference = {stream: checked[stream] for stream in streams}
    query = alert.query
    if isinstance(query, NestedQuery):
        with progress(f"{alert.name}: Tamis and DuckDB, one query after the other"):
            return compare_nested(alert.name, query, catalog, read, reference)
    topic = partial_topic(alert, catalog)
    with progress(f"{alert.name}: Tamis"):
        rows = _compared_rows(query, catalog, read, topic)
    with progress(f"{alert.name}: comparing {len(rows)} rows"):
        given = {**query_inputs(query, catalog).relations, **reference}
        verdict = _compare_rows(alert.name, query, given, rows)
    sent = measured(alert, catalog, recordings).values()
    verdict = replace(verdict, retained=verdict.tuples - sum(one.dropped for one in sent))
    if topic is None:
        return verdict
    rows_sent, records = (sum(getattr(one, of) or 0 for one in sent) for of in ("rows", "records"))
    return replace(verdict, partial_rows=rows_sent, partial_records=records)


def compare_nested(
    name: str,
    query: Query,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    reference: Mapping[str, Recording],
) -> Verdict:
    """The verdict on a query and on all queries within it. Its counts of alarms are those of the last query;
    missed and extra rows are those of all.

    `recordings` are those that Tamis evaluates, `reference` those that DuckDB does.
    """
    if not isinstance(query, NestedQuery):
        return _compare_one(name, query, catalog, recordings, reference)
    inner = []
    ours, theirs = dict(recordings), dict(reference)
    for stream in query.streams:
        inner.append(compare_nested(name, stream.query, catalog, recordings, reference))
        made = recorded(stream, run_query(stream.query, catalog, recordings).rows)
        ours[stream.name] = theirs[stream.name] = made
    found = _compare_one(name, query.query, catalog.with_streams(query.streams), ours, theirs)
    tuples = sum(len(one) for one in recordings.values())
    return replace(
        found,
        tuples=tuples,
        retained=tuples,
        missed=found.missed + sum(one.missed for one in inner),
        extra=found.extra + sum(one.extra for one in inner),
    )


def _compare_one(
    name: str,
    query: Query,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    reference: Mapping[str, Recording],
) -> Verdict:
    rows = _compared_rows(query, catalog, recordings)
    given = {**query_inputs(query, catalog).relations, **recordings_of(query, reference)}
    return _compare_rows(name, query, given, rows)


def _compared_rows(
    query: Query, catalog: Catalog, recordings: Mapping[str, Recording], topic: TopicPlan | None = None
) -> Rows:
    """The rows of a query, those of aggregates with the columns of their groups. `topic`: the topic of
    partial aggregates that they are computed from, if there is one.
    """
    keyed = with_group_keys(query) if isinstance(query, GroupByQuery) else query
    if topic is None:
        return run_query(keyed, catalog, recordings).rows
    return run_query_by_cuts(keyed, catalog, recordings, topic, topic.name).rows


def _compare_rows(name: str, query: Query, given: Mapping[str, Recording], rows: Rows) -> Verdict:
    if isinstance(query, WindowGroupBy | SessionGroupBy):
        return compare_windowed_groups(name, query, given, rows.columns)
    return compare_standing(name, query, given, rows.columns)

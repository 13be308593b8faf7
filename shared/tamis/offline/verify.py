"""Verification: the alarms of Tamis compared with those of a plain join by DuckDB, alert by alert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.evaluation.replay import replay
from tamis.evaluation.standing.recording_runs import run_recordings
from tamis.offline.recordings import since_begin
from tamis.persistent.dicts import PersistentDict
from tamis.plan.model import Definition
from tamis.planning.build import first_plan
from tamis.planning.explanations.measured import measured
from tamis.planning.queries.standing_queries import is_standing, judged
from tamis.planning.stream_plans import live
from tamis.query.model import AlertDef, Catalog, Query
from tamis.recordings.implausible_times import date
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys
from tamis.verification.compare import Alarms, Lateness, Verdict, compare
from tamis.verification.existence import existing_rows
from tamis.verification.nested_queries import compare_nested
from tamis.verification.reference import Reference, plain_join
from tamis.verification.standing import compare_standing
from tamis.verification.watched_columns import checked_recording

Progress = Callable[[str], AbstractContextManager[object]]
"""Shows what is being done, while its context is open."""


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
            verdicts.append(with_lateness(verdict, alert, recordings))
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
    progress: Progress,
) -> Verdict:
    """The verdict on a standing query."""
    streams = [source.stream for source in alert.query.sources if source.stream in recordings]
    read = {stream: recordings[stream] for stream in streams}
    reference = {stream: checked[stream] for stream in streams}
    if alert.query.nested is not None:
        with progress(f"{alert.name}: Tamis and DuckDB, one query after the other"):
            return compare_nested(alert.name, alert.query, catalog, read, reference)
    query = alert.query if alert.query.grouping is None else with_group_keys(alert.query)
    with progress(f"{alert.name}: Tamis"):
        rows = run_recordings(query, catalog, read).rows
    with progress(f"{alert.name}: comparing {len(rows)} rows"):
        given = {**query_inputs(alert.query, catalog).relations, **reference}
        compare_rows = compare_windowed_groups if query.windowed else compare_standing
        verdict = compare_rows(alert.name, alert.query, given, rows.columns)
    dropped = sum(one.dropped for one in measured(alert, catalog, recordings).values())
    return replace(verdict, retained=verdict.tuples - dropped)

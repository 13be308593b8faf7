"""The tuples of a recording that edges drop for one query, and the calls of functions that this saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Mask
from tamis.operators.time_join.replay import retained_rows
from tamis.persistent.dicts import PersistentDict
from tamis.plan.model import Plan, StreamPlan, TopicPlan
from tamis.plan.omission import filters_before_calls
from tamis.planning.build import first_plan
from tamis.planning.explanations.cut_replay import SentCuts, replayed_cuts
from tamis.planning.explanations.explanation import Measured
from tamis.planning.link.bound import PARTITIONS
from tamis.planning.queries.standing_queries import is_standing, judged
from tamis.planning.stream_plans import live
from tamis.query.model import AlertDef, Catalog
from tamis.recordings.typed import Recording


def measured(alert: AlertDef, catalog: Catalog, recordings: Mapping[str, Recording]) -> dict[str, Measured]:
    """The dropped tuples of each recorded stream, by stream. `alert` must be accepted."""
    plan = plan_alone(alert, catalog)
    patient: dict[str, Mask] = {}
    if alert.options.max_delay is not None:
        options = replace(alert.options, max_delay=None)
        patient = retained_by_edges(replace(alert, options=options), catalog, recordings)
    called = filters_before_calls(plan.definitions)
    found = {}
    for stream in plan.streams:
        if stream.topics and (recording := recordings.get(stream.name)) is not None:
            kept = _kept(stream, recording)
            calls = calls_saved = None
            for filter_ in [one for topic in stream.topics for one in called.get(topic.name, ())]:
                passed = _passing(filter_, recording)
                calls, calls_saved = int(passed.sum()), int((passed & ~kept).sum())
            dropped = int(len(recording) - kept.sum())
            waited = patient.get(stream.name)
            without_delay = None if waited is None else int(len(recording) - waited.sum())
            sent = _sent(stream, recording)
            found[stream.name] = Measured(
                len(recording), dropped, calls, calls_saved, without_delay, *(sent or ())
            )
    return found


def retained_by_edges(
    alert: AlertDef, catalog: Catalog, recordings: Mapping[str, Recording]
) -> dict[str, Mask]:
    """The mask of the rows of each recorded stream that edges send for the alert alone, by stream. `alert`
    must be accepted.
    """
    return {
        stream.name: _kept(stream, recordings[stream.name])
        for stream in plan_alone(alert, catalog).streams
        if stream.topics and stream.name in recordings
    }


def partial_topic(alert: AlertDef, catalog: Catalog) -> TopicPlan | None:
    """The topic of partial aggregates that edges publish for the alert alone; None if they publish readings.
    `alert` must be accepted.
    """
    topics = (topic for stream in plan_alone(alert, catalog).streams for topic in stream.topics)
    return next((topic for topic in topics if topic.partials is not None), None)


def plan_alone(alert: AlertDef, catalog: Catalog) -> Plan:
    """The plan of a fleet with this alert alone. `alert` must be accepted."""
    alert, catalog = live(alert), catalog.reading(alert)
    if is_standing(alert, catalog):
        # `results` keeps it: the catalogue of the plan has neither tables nor derived streams.
        judged(alert, catalog)
    return first_plan(
        Catalog(
            catalog.streams,
            {},
            catalog.functions,
            PersistentDict({alert.name: alert}),
            results=catalog.results,
        )
    )


def _kept(stream: StreamPlan, recording: Recording) -> Mask:
    kept: Mask = np.logical_or.reduce([retained_rows(topic, recording) for topic in stream.topics])
    return kept


def _sent(stream: StreamPlan, recording: Recording) -> SentCuts | None:
    """The records and rows of partial aggregates of a recording; None if edges send tuples."""
    partial = [topic for topic in stream.topics if topic.partials is not None]
    if not partial:
        return None
    sent = [replayed_cuts(topic, recording, PARTITIONS) for topic in partial]
    return SentCuts(sum(one.records for one in sent), sum(one.rows for one in sent))


def _passing(filter_: Expr | None, recording: Recording) -> Mask:
    if filter_ is None:
        return np.ones(len(recording), np.bool_)
    view = {("", name): column for name, column in recording.columns.items()}
    return holds(filter_, view, len(recording))

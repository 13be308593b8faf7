"""What the joiner shows of itself: metrics from its own frontier records, the plans, and Kafka's offsets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tamis.errors import InputError
from tamis.messaging.records import Frontier
from tamis.messaging.topics import stream_of
from tamis.planning.plan import Plan
from tamis.planning.plan_json import decode_plan
from tamis.telemetry import Metrics, get_logger

SECONDS = 1e-6

log = get_logger("joiner.observer")


class Observer:
    """Keeps the last frontier record of each output partition and the newest plan, and shows them as metrics.

    Counters in the records grow since the state's beginning, and so do the metrics: they go on over restarts
    of this process.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._frontiers: dict[int, Frontier] = {}
        self._plan: Plan | None = None

    def frontier(self, value: bytes) -> None:
        """Take a record of `tamis.frontiers`; one that is older than what is known, or can't be read, changes
        nothing. (The topic is read from its beginning again when it could not be followed.)
        """
        try:
            record = Frontier.from_bytes(value)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("a frontier record can't be read", error=repr(error))
            return
        last = self._frontiers.get(record.partition)
        if last is not None and record.time < last.time:
            return
        self._frontiers[record.partition] = record
        for alert, count in record.alarms.items():
            self._count("tamis_alarms_total", count, last.alarms.get(alert, 0) if last else 0, query=alert)
        for alert, count in record.missed.items():
            self._count(
                "tamis_query_late_total", count, last.missed.get(alert, 0) if last else 0, query=alert
            )
        for reason, count in record.dead.items():
            before = last.dead.get(reason, 0) if last else 0
            self._count("tamis_dead_letters_total", count, before, service="joiner", reason=reason)
        self._count("tamis_joiner_late_total", record.late, last.late if last else 0)

    def plan(self, value: bytes) -> Plan | None:
        """Take a record of `tamis.plans`: the plan if it is the newest so far. (What is none is refused where
        the query reads it.)
        """
        try:
            plan = decode_plan(value)
        except InputError:
            return None
        if self._plan is not None and plan.version <= self._plan.version:
            return None
        self._plan = plan
        return plan

    def show(self, now: float) -> None:
        """Set the gauges; `now` is the wall clock in seconds."""
        metrics, records = self._metrics, list(self._frontiers.values())
        for name in (
            "tamis_joiner_state_tuples",
            "tamis_joiner_state_bytes",
            "tamis_joiner_bound_tuples",
            "tamis_joiner_frontier_seconds",
            "tamis_joiner_frontier_lag_seconds",
            "tamis_query_state_tuples",
            "tamis_query_state_bytes",
            "tamis_query_bound_tuples",
        ):
            metrics.clear(name)
        if not records:
            return
        metrics.set("tamis_plan_version", min(record.plan for record in records), service="joiner")
        metrics.set("tamis_joiner_parked_records", sum(record.parked for record in records))
        for topic in {topic for record in records for topic in record.topics}:
            states = [record.topics[topic] for record in records if topic in record.topics]
            labels = {"stream": stream_of(topic) or "", "topic": topic}
            metrics.set("tamis_joiner_state_tuples", sum(state.tuples for state in states), **labels)
            metrics.set("tamis_joiner_state_bytes", sum(state.bytes for state in states), **labels)
            reached = [state.frontier for state in states if state.frontier is not None]
            if len(reached) == len(states):
                metrics.set("tamis_joiner_frontier_seconds", min(reached) * SECONDS, **labels)
                lag = max(0.0, now - min(reached) * SECONDS)
                metrics.set("tamis_joiner_frontier_lag_seconds", lag, **labels)
        for metric, amounts in (
            ("tamis_query_state_tuples", [record.definitions for record in records]),
            ("tamis_query_state_bytes", [record.sizes for record in records]),
        ):
            live: Counter[str] = Counter()
            for amount in amounts:
                for name, count in amount.items():
                    live[name.rpartition("@")[0]] += count
            for alert, count in live.items():
                metrics.set(metric, count, query=alert)
        if self._plan is not None:
            self._show_bounds(self._plan)

    def _show_bounds(self, plan: Plan) -> None:
        queries: dict[str, list[int | None]] = {}
        topics: dict[tuple[str, str], list[int | None]] = {}
        # A frontier waits for what any entry of the topic holds, not for the definition's own alone.
        held = {
            topic.name: max((entry.interval for entry in topic.entries), default=0)
            for stream in plan.streams
            for topic in stream.topics
        }
        for definition in plan.definitions:
            if all(source.kept is None for source in definition.inputs):
                # A plan of an older release says the whole bound only.
                queries.setdefault(definition.alert, []).append(definition.bound)
                continue
            for source in definition.inputs:
                others = [one for one in definition.inputs if one is not source]
                longer = max((held.get(one.topic, 0) - one.interval for one in others), default=0)
                most = source.kept.most(max(0, longer)) if source.kept else None
                queries.setdefault(definition.alert, []).append(most)
                topics.setdefault((source.stream, source.topic), []).append(most)
        for query in plan.standing:
            panes = [(one.kept, held.get(one.topic, 0)) for one in query.inputs if one.kept is not None]
            bounds: list[int | None] = [of.most(longer) for of, longer in panes]
            queries.setdefault(query.alert, []).extend(bounds or [query.bound])
        # A replaced alert runs on beside its successor for a while: together they may hold what both may.
        for alert, known in queries.items():
            if (proven := _proven(known)) is not None:
                self._metrics.set("tamis_query_bound_tuples", sum(proven), query=alert)
        # A topic's tuples are there once, for all that read it.
        for (stream, topic), known in topics.items():
            if (proven := _proven(known)) is not None:
                self._metrics.set("tamis_joiner_bound_tuples", max(proven), stream=stream, topic=topic)

    def _count(self, name: str, count: int, before: int, **labels: str) -> None:
        # Less than before: the state was begun anew, and its counters with it.
        amount = count - before if count >= before else count
        if amount:
            self._metrics.inc(name, amount, **labels)


def _proven(bounds: list[int | None]) -> list[int] | None:
    """The bounds, where all of them are proven."""
    proven = [bound for bound in bounds if bound is not None]
    return proven if len(proven) == len(bounds) else None


Offsets = Mapping[str, Mapping[int, int]]


def offsets_of(sources: Iterable[Mapping[str, Any]], end: str) -> dict[str, dict[int, int]]:
    """Offsets by topic and partition in the sources of Spark's progress report; `end` is "startOffset" or
    "endOffset".
    """
    found: dict[str, dict[int, int]] = {}
    for source in sources:
        raw = source.get(end)
        document = json.loads(raw) if isinstance(raw, str) else raw
        for topic, partitions in (document or {}).items():
            found.setdefault(topic, {}).update({int(p): int(offset) for p, offset in partitions.items()})
    return found


def lost(read_from: Offsets, least: Offsets) -> dict[tuple[str, int], int]:
    """Records by topic and partition that Kafka deleted before they were read: from where a batch began to
    read to the `least` offset that is still there. Spark is told to go on over such gaps.
    """
    return {
        (topic, partition): least[topic][partition] - offset
        for topic, partitions in read_from.items()
        for partition, offset in partitions.items()
        if least.get(topic, {}).get(partition, 0) > offset
    }

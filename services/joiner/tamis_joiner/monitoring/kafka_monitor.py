"""Monitor thread: follows the plans and the frontier records of the joiner in Kafka, for its metrics."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaException

from tamis.errors import InputError, TamisError
from tamis.messaging import topics
from tamis.messaging.plans import newest, newest_plan
from tamis.messaging.records import Frontier, read_frontier
from tamis.messaging.topic_reader import Record, TopicReader, UnreadableRecords
from tamis.messaging.topics import stream_of
from tamis.operators.windows.boundaries import rightly_behind
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.threads import BackgroundThread
from tamis_joiner.monitoring.deletions import LostRecords, Offsets, least_offsets

SECONDS = 1e-6

# Gauges of topics and queries that may end.
REPLACED = (
    "tamis_joiner_state_tuples",
    "tamis_joiner_state_bytes",
    "tamis_joiner_bound_tuples",
    "tamis_joiner_frontier_seconds",
    "tamis_joiner_frontier_lag_seconds",
    "tamis_query_state_tuples",
    "tamis_query_state_bytes",
    "tamis_query_bound_tuples",
)

_STATE_LOG = get_logger("joiner.observer")

log = get_logger("joiner")

POLL_SECONDS = 0.5
# After an error, until the topics are read again from their beginning.
PAUSE_SECONDS = 2.0
# Deleted records are looked for this often. Retention is hours or days, so a few seconds more don't matter.
LOST_RECORDS_SECONDS = 10.0


class StateMetrics:
    """Keeps the last frontier record of each output partition and the newest plan, and makes metrics of them.

    The counters in the records count since the beginning of the state. So do the metrics, also after this
    process was restarted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._unreadable = UnreadableRecords("joiner", metrics, _STATE_LOG)
        self._frontiers: dict[int, Frontier] = {}
        self._plan: Plan | None = None

    def take_frontier(self, source: Record) -> None:
        """Take a record of `tamis.frontiers`. A record that can't be read changes nothing. Nor does a record
        older than the last one of its partition: after an error the topic is read again from its beginning.
        """
        try:
            record = read_frontier(source.key, source.value or b"")
        except ValueError as error:
            self._unreadable.report(source, error)
            return
        last = self._frontiers.get(record.partition)
        if last is not None and record.time < last.time:
            return
        self._frontiers[record.partition] = record
        for metric, counts, earlier in (
            ("tamis_alarms_total", record.alarms, last.alarms if last else {}),
            ("tamis_query_late_total", record.missed, last.missed if last else {}),
            ("tamis_query_disordered_cuts_total", record.disordered, last.disordered if last else {}),
        ):
            for alert, count in counts.items():
                self._count(metric, count, earlier.get(alert, 0), query=alert)
        for reason, count in record.dead.items():
            before = last.dead.get(reason, 0) if last else 0
            self._count("tamis_dead_letters_total", count, before, service="joiner", reason=reason)
        self._count("tamis_joiner_late_total", record.late, last.late if last else 0)

    @property
    def plan_version(self) -> int:
        """The version of the newest plan, 0 before the first one."""
        return self._plan.version if self._plan else 0

    def take_plan(self, plan: Plan) -> None:
        """Show the bounds of this plan from now on."""
        self._plan = plan

    def update(self, now: float) -> None:
        """Set the gauges. `now` is the wall clock in seconds."""
        with self._metrics.replacing(*REPLACED):
            if self._frontiers:
                self._show(list(self._frontiers.values()), now)

    def _show(self, records: list[Frontier], now: float) -> None:
        metrics = self._metrics
        metrics.set("tamis_plan_version", min(record.plan for record in records), service="joiner")
        metrics.set("tamis_joiner_parked_records", sum(record.parked for record in records))
        behind = {} if self._plan is None else rightly_behind(self._plan)
        for topic in {topic for record in records for topic in record.topics}:
            states = [record.topics[topic] for record in records if topic in record.topics]
            labels = {"stream": stream_of(topic) or "", "topic": topic}
            metrics.set("tamis_joiner_state_tuples", sum(state.tuples for state in states), **labels)
            metrics.set("tamis_joiner_state_bytes", sum(state.bytes for state in states), **labels)
            reached = [state.frontier for state in states if state.frontier is not None]
            if len(reached) == len(states):
                metrics.set("tamis_joiner_frontier_seconds", min(reached) * SECONDS, **labels)
                lag = max(0.0, now - (min(reached) + behind.get(topic, 0)) * SECONDS)
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
        # A frontier waits for the tuples that any entry of the topic holds, not only for the definition's
        # own.
        held = {
            topic.name: max((entry.interval for entry in topic.entries), default=0)
            for stream in plan.streams
            for topic in stream.topics
        }
        shown = {stream.name: stream.shards_of for stream in plan.streams}
        for definition in plan.definitions:
            if all(source.kept is None for source in definition.inputs):
                # A plan of an older release has only one bound for the definition.
                queries.setdefault(definition.alert, []).append(definition.bound)
                continue
            for source in definition.inputs:
                others = [one for one in definition.inputs if one is not source]
                longer = max((held.get(one.topic, 0) - one.interval for one in others), default=0)
                most = source.kept.most(max(0, longer)) if source.kept else None
                queries.setdefault(definition.alert, []).append(most)
                topics.setdefault((shown.get(source.stream, source.stream), source.topic), []).append(most)
        for query in plan.standing:
            longest = max((held.get(one.topic, 0) for one in query.inputs), default=0)
            bounds: list[int | None] = [
                one.kept.most(longest) for one in query.inputs if one.kept is not None
            ]
            queries.setdefault(query.alert, []).extend(bounds or [query.bound])
        # A replaced definition still runs beside its successor for a while, so their bounds are added.
        for alert, known in queries.items():
            if (proven := _proven(known)) is not None:
                self._metrics.set("tamis_query_bound_tuples", sum(proven), query=alert)
        # All definitions share the tuples of a topic, so the greatest bound counts.
        for (stream, topic), known in topics.items():
            if (proven := _proven(known)) is not None:
                self._metrics.set("tamis_joiner_bound_tuples", max(proven), stream=stream, topic=topic)

    def _count(self, name: str, count: int, before: int, **labels: str) -> None:
        # A smaller count than before: the state and its counters started again.
        amount = count - before if count >= before else count
        if amount:
            self._metrics.inc(name, amount, **labels)


def _proven(bounds: list[int | None]) -> list[int] | None:
    """The bounds if all of them are proven, else None."""
    proven = [bound for bound in bounds if bound is not None]
    return proven if len(proven) == len(bounds) else None


class KafkaMonitor(BackgroundThread):
    """The monitor. Its thread runs while the context is open. `read_from` returns the offsets from which the
    last batch read; `partitions` is the partition count that a plan must have.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        metrics: Metrics,
        health: Health,
        *,
        partitions: int,
        read_from: Callable[[], Offsets],
    ) -> None:
        super().__init__("kafka-monitor", 3.0)
        self._kafka, self._health = kafka, health
        self._partitions, self._read_from = partitions, read_from
        self.state = StateMetrics(metrics)
        self.lost = LostRecords(metrics)
        self.topics: tuple[str, ...] = ()  # the stream topics of the newest plan

    def _run(self, closing: threading.Event) -> None:
        while not closing.is_set():
            try:
                self.follow(closing)
            except (TamisError, KafkaException) as error:
                log.warning("the metrics of the state can't be updated", reason=str(error))
                closing.wait(PAUSE_SECONDS)

    def follow(self, closing: threading.Event) -> None:
        """Read the topics from their beginning, then follow them until `closing` is set. Raises TamisError or
        KafkaException if they can't be read.
        """
        looked = time.monotonic()
        config = self._kafka.client_config()
        with (
            TopicReader(config, [topics.PLANS]) as plans,
            TopicReader(config, [topics.FRONTIERS]) as frontiers,
        ):
            plan = newest_plan(plans, _unreadable)
            # Where compaction hasn't run yet, only the last record of each partition is decoded.
            records: Iterable[Record] = {record.key: record for record in frontiers.snapshot()}.values()
            while not closing.is_set():
                for record in records:
                    if record.value is not None:
                        self.state.take_frontier(record)
                if plan is not None:
                    self.state.take_plan(plan.plan)
                    streams = plan.plan.streams
                    self.topics = tuple(topic.name for stream in streams for topic in stream.topics)
                    self._check_partitions(plan.plan)
                self.state.update(time.time())
                if time.monotonic() - looked > LOST_RECORDS_SECONDS:
                    looked = time.monotonic()
                    read_from = self._read_from()
                    self.lost.count(read_from, least_offsets(self._kafka, read_from))
                records = frontiers.poll(POLL_SECONDS)
                plan = newest(plans.poll(), self.state.plan_version, _unreadable)

    def _check_partitions(self, plan: Plan) -> None:
        if plan.partitions == self._partitions:
            self._health.check("plan", None)
            return
        log.error("plan refused", its_partitions=plan.partitions, partitions=self._partitions)
        why = f"plan {plan.version} is for {plan.partitions} partitions, not {self._partitions}"
        self._health.check("plan", why)


def _unreadable(record: Record, error: InputError) -> None:
    # The query writes the dead letter of it.
    log.warning("a plan can't be read", partition=record.partition, offset=record.offset, error=str(error))

"""Monitor thread: follows the plans and the joiner's own frontier records in Kafka, and updates metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaException

from tamis.errors import InputError, TamisError
from tamis.messaging import topics
from tamis.messaging.plans import newest, newest_plan
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.threads import BackgroundThread
from tamis_joiner.monitoring.lost_records import LostRecords, Offsets, least_offsets
from tamis_joiner.monitoring.state_metrics import StateMetrics

log = get_logger("joiner")

POLL_SECONDS = 0.5
# After an error, until the topics are read again from their beginning.
PAUSE_SECONDS = 2.0
# Deleted records are looked for this often. Retention is hours or days, so a few seconds more don't matter.
LOST_RECORDS_SECONDS = 10.0


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
        self._lost = LostRecords(metrics)
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
                    self._lost.count(read_from, least_offsets(self._kafka, read_from))
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

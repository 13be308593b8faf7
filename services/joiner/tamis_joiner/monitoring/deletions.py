"""Deletions in Kafka: topics that are created again under their names, and records deleted unread."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tamis.errors import UnavailableError
from tamis.messaging.connection import Connection, answer_within
from tamis.messaging.rights import READERS
from tamis.messaging.topics import JOINER_PATTERN
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics, get_logger
from tamis.telemetry.threads import BackgroundThread

REQUEST_SECONDS = 5.0
PERIOD_SECONDS = 2.0

# What a broker says that gives topics no ids.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_PATTERN = re.compile(JOINER_PATTERN)

log = get_logger("joiner")

Offsets = Mapping[str, Mapping[int, int]]


class TopicIds(BackgroundThread):
    """Asks Kafka for the ids. While the context is open, a thread asks every few seconds."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__("topic-ids", REQUEST_SECONDS + 1)
        self._connection = Connection.of(kafka.client_config())
        config: dict[str, Any] = {**kafka.client_config(), "error_cb": self._connection}
        self._client = AdminClient(config)
        self.newest: dict[str, str] = {}  # the last answer

    def ask(self) -> dict[str, str]:
        """The ids by topic. Raises UnavailableError if Kafka doesn't answer."""
        try:
            known = self._client.list_topics(timeout=REQUEST_SECONDS).topics
            names = [name for name in known if _PATTERN.fullmatch(name)]
            asked = self._client.describe_topics(TopicCollection(names), request_timeout=REQUEST_SECONDS)
            found = {
                name: str(answer_within(question, REQUEST_SECONDS + 1).topic_id)
                for name, question in asked.items()
            }
        except KafkaException as error:
            self._client.poll(0)  # calls the error callback, which has the cause
            raise self._connection.error(error) from error
        self._connection.answered()
        self.newest = {name: topic_id for name, topic_id in found.items() if topic_id != _NO_ID}
        return self.newest

    def _run(self, closing: threading.Event) -> None:
        while not closing.wait(PERIOD_SECONDS):
            # The probe of Kafka reports that Kafka is away.
            with suppress(UnavailableError):
                self.ask()


class LostRecords:
    """Counts the records that Kafka deleted before they were read. Each is counted once, even if `count` is
    called several times.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counted: dict[tuple[str, int], int] = {}  # up to which offset records were counted
        self.last = 0  # when some were last found, microseconds

    def count(self, read_from: Offsets, least: Offsets) -> None:
        """Count the deleted records: those between the offsets from which a batch reads and the least offsets
        in Kafka.
        """
        for (topic, partition), number in lost(read_from, least).items():
            offset = read_from[topic][partition]
            new = offset + number - max(offset, self._counted.get((topic, partition), 0))
            self._counted[topic, partition] = offset + number
            if new > 0:
                log.error("records were deleted unread", topic=topic, partition=partition, records=new)
                self._metrics.inc("tamis_joiner_lost_records_total", new)
                self.note()

    def note(self) -> None:
        """Note that records were found now that had been deleted."""
        self.last = time.time_ns() // 1000


def lost(read_from: Offsets, least: Offsets) -> dict[tuple[str, int], int]:
    """Deleted records by topic and partition: from the offset where a batch began to read to the `least`
    offset that Kafka still has. Spark is told to continue over such gaps.
    """
    return {
        (topic, partition): least[topic][partition] - offset
        for topic, partitions in read_from.items()
        for partition, offset in partitions.items()
        if least.get(topic, {}).get(partition, 0) > offset
    }


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


def records_between(start: Offsets, end: Offsets) -> int:
    """The number of offsets between two; a partition that `start` lacks is read from its beginning.

    >>> records_between({"a": {0: 3, 1: 4}}, {"a": {0: 5, 1: 4}, "b": {0: 2}})
    4
    """
    return sum(
        max(0, offset - start.get(topic, {}).get(partition, 0))
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    )


def least_offsets(kafka: KafkaSettings, partitions: Offsets) -> dict[str, dict[int, int]]:
    """The least offset that Kafka has of each partition in `partitions`."""
    least: dict[str, dict[int, int]] = {}
    consumer = Consumer({**kafka.client_config(), "group.id": READERS})
    try:
        for topic, numbers in partitions.items():
            for number in numbers:
                # A topic that was deleted meanwhile has no offsets, and nothing to lose.
                with suppress(KafkaException):
                    low, _ = consumer.get_watermark_offsets(
                        TopicPartition(topic, number), timeout=REQUEST_SECONDS
                    )
                    least.setdefault(topic, {})[number] = low
    finally:
        consumer.close()
    return least

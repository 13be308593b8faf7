"""Offsets of a sink's consumer group: registration of a new sink, commits, and where to continue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tamis.messaging.connection import Connection
from tamis.messaging.rights import ALERTS_GROUP
from tamis.messaging.topics import EPISODES
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_alerts.kafka_reads import offset_range

GROUP_PREFIX = "tamis-alerts."
# One request to Kafka may take this long.
REQUEST_SECONDS = 10.0

log = get_logger("alerts.sinks")

T = TypeVar("T")

# An offset, and the metadata that is committed with it.
Position = tuple[int, str]


class GroupOffsets:
    """The offsets that the group of sink `name` has committed. `stopping` ends all waiting."""

    def __init__(
        self, name: str, consumer: Consumer, connection: Connection, stopping: threading.Event
    ) -> None:
        self._name, self._consumer = name, consumer
        self._connection, self._stopping = connection, stopping

    def register(self, starts: Mapping[int, int]) -> None:
        """Commit an offset of every partition for a new sink: that in `starts`, by partition. Otherwise the
        sink gets the events from now on.

        Raises UnavailableError.
        """
        self._when_ready(lambda: self._register(starts))

    @property
    def registered(self) -> bool:
        """True if the group has committed an offset of any partition. Raises UnavailableError."""
        return any(at.offset >= 0 for at in self._when_ready(self._committed))

    def _when_ready(self, ask: Callable[[], T]) -> T:
        try:
            # A cluster that has just started has no coordinator of groups yet.
            return Retrying(
                stop=stop_after_delay(3 * REQUEST_SECONDS),
                wait=wait_fixed(0.2),
                retry=retry_if_exception_type(KafkaException),
                reraise=True,
            )(ask)
        except KafkaException as error:
            raise self._connection.error(error) from error

    def _committed(self) -> list[TopicPartition]:
        return committed_offsets(self._consumer)

    def _register(self, starts: Mapping[int, int]) -> None:
        new = [at for at in self._committed() if at.offset < 0]
        for at in new:
            at.offset = starts.get(at.partition, self._range(at.partition)[1])
        if new:
            with _unless_group_has_members():
                self._consumer.commit(offsets=new, asynchronous=False)

    def starts(self, partitions: list[TopicPartition]) -> dict[int, Position]:
        """The committed position of each partition, or its beginning if nothing was committed; {} if the
        service stops meanwhile.
        """
        while not self._stopping.is_set():
            try:
                found = self._consumer.committed(partitions, timeout=REQUEST_SECONDS)
                return {
                    at.partition: (at.offset, at.metadata or "")
                    if at.offset >= 0
                    else (offset_range(self._consumer, at, REQUEST_SECONDS)[0], "")
                    for at in found
                }
            except KafkaException as error:
                log.warning(
                    "committed offsets can't be read",
                    sink=self._name,
                    error=str(self._connection.error(error)),
                )
        return {}

    def commit(self, positions: Mapping[int, Position]) -> bool:
        """Commit the positions of partitions; False if Kafka doesn't accept them. The next commit includes
        them. A crash before that repeats notifications.
        """
        offsets = [
            TopicPartition(EPISODES, number, offset, metadata)
            for number, (offset, metadata) in positions.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.warning("offsets not committed", sink=self._name, error=str(self._connection.error(error)))
            return False
        return True

    def unread(self, number: int, at: int) -> int:
        """The number of records of a partition from offset `at` on. Raises KafkaException."""
        first, end = self._range(number)
        return max(0, end - max(at, first))  # Kafka deletes the oldest ones

    def _range(self, number: int) -> tuple[int, int]:
        return offset_range(self._consumer, TopicPartition(EPISODES, number), REQUEST_SECONDS)


def committed_offsets(consumer: Consumer) -> list[TopicPartition]:
    """The offset of each partition that the consumer's group has committed, below 0 if it has none. Raises
    KafkaException.
    """
    topic = consumer.list_topics(EPISODES, timeout=REQUEST_SECONDS).topics[EPISODES]
    numbers = [TopicPartition(EPISODES, number) for number in topic.partitions]
    return consumer.committed(numbers, timeout=REQUEST_SECONDS)


def offsets_of_first_version(kafka: KafkaSettings) -> dict[int, int]:
    """The offsets, by partition, at which an alerts service of the commit 2a99bde stopped to notify; {} if
    there was none. Raises UnavailableError.
    """
    config = kafka.client_config()
    connection = Connection.of(config)
    consumer = Consumer(
        {**config, "group.id": ALERTS_GROUP, "enable.auto.commit": False, "error_cb": connection}
    )
    try:
        return {at.partition: at.offset for at in committed_offsets(consumer) if at.offset >= 0}
    except KafkaException as error:
        raise connection.error(error) from error
    finally:
        consumer.close()


@contextmanager
def _unless_group_has_members() -> Iterator[None]:
    """Ignore the error that the group has members, because another process has then registered the sink."""
    try:
        yield
    except KafkaException as error:
        has_members = (
            KafkaError.UNKNOWN_MEMBER_ID,
            KafkaError.ILLEGAL_GENERATION,
            KafkaError.REBALANCE_IN_PROGRESS,
        )
        if error.args[0].code() not in has_members:
            raise

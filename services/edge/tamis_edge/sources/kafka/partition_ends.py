"""The ends of a topic's partitions, requested from the broker over a separate connection.

The client tells a consumer only once that it has reached the end of a partition. To be told again, the
consumer would have to seek, and a seek discards the fetch in progress. Over a slow link, where a fetch takes
longer than the time between two seeks, no reading would ever arrive. On a separate connection the answer also
doesn't wait behind a fetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tamis.messaging.connection import listed_offset
from tamis.telemetry.logs import get_logger

_log = get_logger("edge.kafka")

SECONDS = 10.0  # after which a question that has no answer is given up


class PartitionEnds:
    """The ends of one topic. It is used by one thread, and never waits."""

    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        self._config, self._topic = dict(config), topic
        self._client: AdminClient | None = None  # made for the first question
        self._asked: dict[int, Future[Any]] = {}

    def ask(self, partitions: Iterable[int]) -> None:
        """Ask for the ends of these partitions, except those for which an answer is still expected."""
        wanted = [partition for partition in partitions if partition not in self._asked]
        if not wanted:
            return
        if self._client is None:
            self._client = AdminClient(self._config)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = self._client.list_offsets(
            dict.fromkeys((TopicPartition(self._topic, p) for p in wanted), latest),
            # The consumer reads up to there, too.
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=SECONDS,
        )
        self._asked.update({at.partition: answer for at, answer in found.items()})

    def answers(self) -> dict[int, int]:
        """The ends that have arrived since the last call, by partition."""
        ends: dict[int, int] = {}
        for partition, answer in [(p, a) for p, a in self._asked.items() if a.done()]:
            del self._asked[partition]
            try:
                ends[partition] = listed_offset(answer)
            except KafkaException as error:
                _log.debug("a partition's end is not known", topic=self._topic, error=str(error))
        return ends

    def forget(self) -> None:
        """Ignore the answers to all questions so far."""
        self._asked.clear()

    def close(self) -> None:
        """Close the connection."""
        self._asked.clear()
        self._client = None

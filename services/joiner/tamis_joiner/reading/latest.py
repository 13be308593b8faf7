"""The offsets that Kafka has now, of all topics whose names match a pattern."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tamis.messaging.connection import Connection, listed_offset
from tamis_joiner.reading.offsets import Offsets

# A joiner that is stopped while Kafka is away waits for so long.
REQUEST_SECONDS = 5.0
# New topics are looked for this often. New records are asked for each time, several times a second.
TOPICS_SECONDS = 0.5

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class LatestOffsets:
    """Asks Kafka. `config` is a configuration of confluent-kafka. Methods raise UnavailableError if Kafka
    doesn't answer.
    """

    def __init__(
        self, config: Mapping[str, Any], pattern: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = Connection.of(config)
        settings: dict[str, Any] = {**config, "error_cb": self._connection}
        self._admin = AdminClient(settings)
        self._pattern = re.compile(pattern)
        self._clock = clock
        self._partitions: dict[str, list[int]] = {}
        self._looked = float("-inf")

    def earliest(self) -> dict[str, dict[str, int]]:
        """The least offset of each partition."""
        self._look()
        return _document(self._ask(self._all(), _EARLIEST))

    def latest(self, start: Offsets) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
        """The end of each partition, and where to read from: `start`, and for a partition that it lacks, its
        least offset.

        The end is that of committed transactions. A partition whose end isn't known now has that of `start`.
        A topic that was deleted is in neither.
        """
        self._look()
        known = {(topic, int(number)) for topic, numbers in start.items() for number in numbers}
        there = self._all()
        ends = self._ask(there, _LATEST)
        least = self._ask([one for one in there if one not in known], _EARLIEST)
        begin = {one: start[one[0]][str(one[1])] for one in there if one in known} | least
        found = {one: ends.get(one, begin[one]) for one in there if one in begin}
        return _document(found), _document(begin)

    def _all(self) -> list[tuple[str, int]]:
        return [(topic, number) for topic, numbers in self._partitions.items() for number in numbers]

    def _look(self) -> None:
        """Ask for the topics and their partitions, at most every TOPICS_SECONDS."""
        now = self._clock()
        if now - self._looked < TOPICS_SECONDS:
            return
        try:
            known = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        except KafkaException as error:
            self._admin.poll(0)  # calls the error callback, which has the cause
            raise self._connection.error(error) from error
        self._connection.answered()
        self._looked = now
        # A topic that has an error has no partitions in the answer: those that were known remain.
        self._partitions = {
            name: sorted(topic.partitions) if topic.error is None else self._partitions.get(name, [])
            for name, topic in sorted(known.items())
            if self._pattern.fullmatch(name)
        }

    def _ask(self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        asked = {TopicPartition(*one): spec for one in partitions}
        if not asked:
            return {}
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_SECONDS
        )
        found: dict[tuple[str, int], int] = {}
        failed: KafkaException | None = None
        for at, answer in answers.items():
            try:
                found[at.topic, at.partition] = listed_offset(answer)
            except KafkaException as error:
                # No broker answers, the leader changes, or the topic was just deleted.
                failed = error
        if failed is not None:
            self._looked = float("-inf")
            if not found:
                self._admin.poll(0)
                raise self._connection.error(failed) from failed
        return found


def _document(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    """Always in the same order: Spark compares the text."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found

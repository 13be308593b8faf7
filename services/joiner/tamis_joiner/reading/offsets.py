"""Offsets of topics as Spark's checkpoint has them, and the ranges that a batch reads.

The form is that of Spark's Kafka source, `{"tamis.plans": {"0": 8}}`. So a joiner goes on with a checkpoint
that was written with that source, and the other way round.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tamis.messaging.connection import Connection, listed_offset

Offsets = Mapping[str, Mapping[str, int]]
"""By topic and partition number, the offset of the next record."""

# A joiner that is stopped while Kafka is away waits for so long.
REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = REQUEST_SECONDS + 1
# New topics are looked for this often. New records are asked for each time, several times a second.
TOPICS_SECONDS = 0.5

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class Range(NamedTuple):
    """The records of a partition from offset `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """The ranges with records between two offsets, by topic and partition. A partition that `start` lacks is
    read from its beginning.

    >>> ranges({"a": {"0": 3, "1": 4}}, {"a": {"0": 5, "1": 4}, "b": {"0": 2}})
    [Range(topic='a', partition=0, start=3, end=5), Range(topic='b', partition=0, start=0, end=2)]
    """
    found = (
        Range(topic, int(partition), start.get(topic, {}).get(partition, 0), offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    )
    return sorted(one for one in found if one.start < one.end)


def limited(start: Offsets, end: Offsets, most: int) -> dict[str, dict[str, int]]:
    """`end`, or less where it is more than about `most` records from `start`: each partition gets its share
    of them, but at least one.

    >>> limited({"a": {"0": 100}}, {"a": {"0": 200}, "b": {"0": 300}}, 40)
    {'a': {'0': 110}, 'b': {'0': 30}}
    """
    found = {topic: dict(partitions) for topic, partitions in end.items()}
    read = ranges(start, end)
    total = sum(one.end - one.start for one in read)
    if total > most:
        for one in read:
            share = max(1, (one.end - one.start) * most // total)
            found[one.topic][str(one.partition)] = one.start + share
    return found


def by_partition(read: Sequence[Range]) -> Iterator[tuple[int, list[Range]]]:
    """The ranges of each partition number, over all topics."""
    for partition in sorted({one.partition for one in read}):
        yield partition, [one for one in read if one.partition == partition]


def encode(read: Sequence[Range]) -> str:
    """Ranges as JSON."""
    return json.dumps(read)


def decode(text: str) -> list[Range]:
    """The ranges of `encode`.

    >>> decode(encode([Range("a", 0, 3, 5)]))
    [Range(topic='a', partition=0, start=3, end=5)]
    """
    return [Range(*one) for one in json.loads(text)]


class LatestOffsets:
    """Asks Kafka. `config` is a configuration of confluent-kafka. Methods raise UnavailableError if Kafka
    doesn't answer.
    """

    def __init__(
        self, config: Mapping[str, Any], pattern: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = Connection.of(config)
        self._settings: dict[str, Any] = {**config, "error_cb": self._connection}
        self._admin = AdminClient(self._settings)
        self._given_up: list[AdminClient] = []  # those that left a question open
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
        until = time.monotonic() + _ANSWER_SECONDS
        failed: KafkaException | None = None
        for at, answer in answers.items():
            try:
                found[at.topic, at.partition] = listed_offset(answer, max(0.0, until - time.monotonic()))
            except KafkaException as error:
                # No broker answers, the leader changes, or the topic was just deleted.
                failed = error
        if failed is not None:
            self._looked = float("-inf")
            self._admin.poll(0)
            if not all(answer.done() for answer in answers.values()):
                # This client may not answer again. If it were destroyed, that would wait for the answers.
                self._given_up.append(self._admin)
                self._admin = AdminClient(self._settings)
            if not found:
                raise self._connection.error(failed) from failed
        return found


def _document(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    """Always in the same order: Spark compares the text."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found

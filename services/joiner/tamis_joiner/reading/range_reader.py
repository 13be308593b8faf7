"""Reader of ranges of offsets, with one client for as long as its process lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import methodcaller
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tamis.errors import UnavailableError
from tamis.messaging.connection import NO_BROKER, NOT_AUTHORIZED, Connection
from tamis.messaging.rights import READERS
from tamis.telemetry import get_logger
from tamis_joiner.core.records.envelopes import Records
from tamis_joiner.reading.offsets import Range

log = get_logger("joiner")

# Messages taken from the client at once: few enough that they are still in the core's cache when their fields
# are read.
AT_ONCE = 1_000
WAIT_SECONDS = 0.5
# A partition that is silent for so long is asked for its offsets, again and again.
SILENT_SECONDS = 2.0
# A topic that Kafka doesn't know for so long is gone. A new leader may not know it at once.
GONE_SECONDS = 10.0
# An end that Kafka doesn't know for so long is gone. A new leader may know less at first: the other replicas
# tell it which of its records are committed, and it drops a silent replica after 30 s by default.
SHORTER_SECONDS = 60.0
# Without a message for so long, the read fails.
PATIENCE_SECONDS = 120.0

_CLIENT = {
    "group.id": READERS,  # the client requires a name, though it neither joins a group nor commits
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    # Records that Kafka deleted unread are skipped: `monitoring.lost_records` counts them.
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    # The broker answers at once or soon, also where a partition has no more records: the client asks for the
    # next partitions only after the answer.
    "fetch.wait.max.ms": 20,
    # What the client keeps in advance. All that it fetches after the end of a range is read from the broker,
    # decoded and thrown away; by default that is up to 1 MB and 100,000 messages of each partition.
    "max.partition.fetch.bytes": 256 * 1024,
    "queued.min.messages": 5_000,
    "queued.max.messages.kbytes": 16 * 1024,
    # It looks again for room after a second by default.
    "fetch.queue.backoff.ms": 5,
}
_UNKNOWN = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


@dataclass
class _Part:
    """A range, and what has been read of it."""

    range: Range
    heard: float  # when a record came last
    values: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    unknown_since: float | None = None  # since when Kafka hasn't known the topic
    shorter_since: float | None = None  # since when Kafka hasn't known the range's end


class RangeReader:
    """Reads ranges, those of one call at a time. `config` is a configuration of confluent-kafka."""

    def __init__(self, config: Mapping[str, Any], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = Connection.of(config)
        self._consumer = Consumer({**config, **_CLIENT, "error_cb": self._connection})
        self._clock = clock
        self._parts: dict[tuple[str, int], _Part] = {}

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def read(self, ranges: Sequence[Range]) -> list[Records]:
        """The committed records of the ranges that Kafka still has, in the order of the ranges. A range
        without records is left out.

        Offsets of a range may have no record: of an aborted transaction, after compaction, after retention,
        or because the topic was deleted. Raises UnavailableError if Kafka sends nothing for two minutes, and
        NotAuthorizedError if this client may not read a topic.
        """
        now = self._clock()
        parts = [_Part(one, now) for one in ranges]
        self._parts = {(part.range.topic, part.range.partition): part for part in parts}
        looked = now
        self._consumer.assign([TopicPartition(one.topic, one.partition, one.start) for one in ranges])
        try:
            while self._parts:
                first = self._consumer.poll(WAIT_SECONDS)
                if first is not None:
                    self._take([first, *self._consumer.consume(AT_ONCE, timeout=0)])
                if self._clock() - looked > SILENT_SECONDS:
                    looked = self._clock()
                    self._look_at_silent(looked)
        finally:
            self._consumer.unassign()
        return [_records(part) for part in parts if part.values]

    def _take(self, messages: Sequence[Message]) -> None:
        now = self._clock()
        for (topic, number), run in _runs(messages):
            records = [message for message in run if message.error() is None]
            part = self._parts.get((topic, number))
            if part is None:
                self._raise_errors(run)
                continue
            if records:
                _add(part, records)
                part.heard, part.unknown_since, part.shorter_since = now, None, None
                self._connection.answered()
                if (records[-1].offset() or 0) >= part.range.end - 1:
                    self._finish(part)
                    continue
            if len(records) < len(run) and self._ended(part, run):
                self._finish(part)

    def _ended(self, part: _Part, run: Sequence[Message]) -> bool:
        """True if one of the events is that the partition has no record before the end of its range."""
        self._raise_errors(run)
        return any(
            error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= part.range.end
            for message in run
            if (error := message.error()) is not None
        )

    def _raise_errors(self, run: Sequence[Message]) -> None:
        for message in run:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF or error.code() in NO_BROKER:
                continue
            if error.code() in NOT_AUTHORIZED:
                topic = message.topic()
                raise self._connection.not_authorized(f"no Read on topic {topic}" if topic else error.str())
            # A topic that was deleted falls silent, and so is found.
            if error.code() not in _UNKNOWN:
                raise self._connection.error(error)

    def _finish(self, part: _Part) -> None:
        """Fetch no more of the partition."""
        at = part.range.topic, part.range.partition
        del self._parts[at]
        self._consumer.incremental_unassign([TopicPartition(*at)])

    def _look_at_silent(self, now: float) -> None:
        for part in [part for part in self._parts.values() if now - part.heard > SILENT_SECONDS]:
            if self._is_gone(part, now):
                log.warning("the rest of a range is gone", range=part.range, read=len(part.values))
                self._finish(part)
            elif now - part.heard > PATIENCE_SECONDS:
                topic, number = part.range.topic, part.range.partition
                raise self._connection.trouble or UnavailableError(
                    f"Kafka sent nothing for {PATIENCE_SECONDS:.0f} s", where=f"{topic}, partition {number}"
                )

    def _is_gone(self, part: _Part, now: float) -> bool:
        """True if Kafka has no record of the rest of the range, and won't get one."""
        unknown = shorter = False
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(part.range.topic, part.range.partition), timeout=SILENT_SECONDS
            )
            if low >= part.range.end:
                return True
            shorter = high < part.range.end
        except KafkaException:
            # The client also says "unknown partition" if no broker answers.
            unknown = self._is_unknown(part.range)
        part.unknown_since = (part.unknown_since or now) if unknown else None
        part.shorter_since = (part.shorter_since or now) if shorter else None
        return (part.unknown_since is not None and now - part.unknown_since > GONE_SECONDS) or (
            part.shorter_since is not None and now - part.shorter_since > SHORTER_SECONDS
        )

    def _is_unknown(self, range: Range) -> bool:
        """True if Kafka answers that it has no such topic or partition."""
        try:
            # Asked for by its name: a list of all topics leaves out those that this client may not read.
            topic = self._consumer.list_topics(range.topic, SILENT_SECONDS).topics[range.topic]
        except KafkaException:
            return False
        if topic.error is not None:
            return bool(topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART)
        return range.partition not in topic.partitions


def _runs(messages: Sequence[Message]) -> Iterator[tuple[tuple[Any, Any], list[Message]]]:
    """The messages in runs of one partition, as the client delivers them."""
    for topic, some in groupby(messages, methodcaller("topic")):
        for number, run in groupby(some, methodcaller("partition")):
            yield (topic, number), list(run)


def _add(part: _Part, records: list[Message]) -> None:
    # Where a partition was cut off below the place of the client, it goes back to the least offset.
    first, end = part.offsets[-1] + 1 if part.offsets else part.range.start, part.range.end
    offsets = [message.offset() or 0 for message in records]
    if offsets[0] < first or offsets[-1] >= end:
        within = [row for row, offset in enumerate(offsets) if first <= offset < end]
        records, offsets = [records[row] for row in within], [offsets[row] for row in within]
    part.offsets += offsets
    # No service writes records without a value (tombstones) here: an empty value becomes a dead letter.
    part.values += [message.value() or b"" for message in records]
    part.arrived += [message.timestamp()[1] for message in records]


def _records(part: _Part) -> Records:
    return Records(
        part.range.topic,
        part.range.partition,
        part.values,
        np.array(part.offsets, np.int64),
        np.array(part.arrived, np.int64) * 1000,
    )

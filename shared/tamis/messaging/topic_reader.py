"""Reader of whole topics: from the beginning to the end, then new records as they arrive.

Services recover the state that they keep in compacted topics in this way. A reader belongs to no consumer
group: it reads every partition, and begins anew with each start of its process.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tamis.errors import UnavailableError
from tamis.messaging.connection import NO_BROKER, Connection, kafka_at
from tamis.messaging.rights import READERS
from tamis.telemetry import Metrics

# Errors of a connection that the client restores without help.
_PASSING = NO_BROKER | {KafkaError._RESOLVE}
# Errors of a partition whose leader changes: the client asks for the new leader.
_LEADER_CHANGES = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}

# Without an answer to a question for this long the broker counts as away.
METADATA_SECONDS = 5.0
# A snapshot gives up when the broker sends nothing for this long. The time that the caller spends on the
# records doesn't count.
SILENCE_SECONDS = 30.0
_WAIT_SECONDS = 0.1  # of one poll within a snapshot


T = TypeVar("T")


class MissingTopicError(UnavailableError):
    """A topic doesn't exist, or the client may not know that it does."""


@dataclass(frozen=True)
class Record:
    """One record. If `value` is None, the record is a tombstone: it deletes its key."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0  # Kafka's, in milliseconds
    headers: tuple[tuple[str, bytes], ...] = ()


class TopicReader:
    """Reads all partitions of some topics, in one thread at a time. `config` is
    `KafkaSettings.client_config()`.

    With `committed` False it also reads the records of open and of aborted transactions. With `one` it reads
    a single partition of each topic, chosen by this number.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topics: Sequence[str],
        *,
        committed: bool = True,
        one: int | None = None,
    ) -> None:
        self._topics = tuple(topics)
        self._one = one
        self._ends: set[tuple[str, int]] = set()
        self._assigned = 0
        self._from_beginning = False
        self._connection = Connection.of(config)
        self._bootstrap = str(config["bootstrap.servers"])
        self._consumer = Consumer(
            {
                **config,
                # librdkafka requires a name, though the reader neither joins a group nor commits.
                "group.id": READERS,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                # By default the broker holds records back for up to half a second until more arrive.
                "fetch.wait.max.ms": 100,
                "error_cb": self._connection,
            }
        )

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(
        self, silence: float = SILENCE_SECONDS, last: Mapping[str, int] | None = None
    ) -> Iterator[Record]:
        """All records from the beginning to the end. A partition ends at the offset that was its end when the
        reader reached it. `poll` continues from there. `last` limits topics to that many offsets before the
        end of each partition.

        Raises UnavailableError if a topic is missing or the broker sends nothing for `silence` seconds. The
        caller may take any time between two records.
        """
        self._assign(last or {})
        silent = 0.0
        while len(self._ends) < self._assigned:
            ended = len(self._ends)
            records = self.poll(_WAIT_SECONDS)
            # Empty polls are counted instead of reading a clock: the process may have been suspended.
            silent = 0.0 if records or len(self._ends) > ended else silent + _WAIT_SECONDS
            if silent > silence:
                raise self.trouble or UnavailableError(
                    f"Kafka sent nothing for {silence:g} s before the end was reached",
                    where=", ".join(self._topics),
                    hint="check that Kafka is up and try again",
                )
            yield from records

    def follow(self, since: int | None = None) -> None:
        """Start at the end of each partition, or at its first record from `since` on (Kafka's time, in
        milliseconds); `poll` reads on from there. Raises UnavailableError if a topic is missing or Kafka
        doesn't answer.
        """
        if since is None:
            self._assign(dict.fromkeys(self._topics, 0))
            return
        wanted = [TopicPartition(name, number, since) for name, number in self._partitions()]
        found = answer_of(
            lambda: self._consumer.offsets_for_times(wanted, timeout=METADATA_SECONDS), self._connection
        )
        for one in found:
            if one.error is not None:
                raise self._connection.error(one.error)
            if one.offset < 0:  # no record since then; the end is asked for now, since it moves on
                one.offset = self._ends_of(one)[1]
        self._take_up(found)

    def poll(self, timeout: float = 0.0, limit: int = 1000) -> list[Record]:
        """The next records, at most `limit`, after waiting up to `timeout` seconds for the first one.

        If the broker is away, there are no records, and the client reconnects automatically.
        """
        records = []
        for message in self._consumer.consume(limit, timeout):
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                self._connection.answered()
            if error is None:
                records.append(_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.add((str(message.topic()), message.partition() or 0))
            elif not passes(error):
                raise self._connection.error(error)
        return records

    @property
    def trouble(self) -> UnavailableError | None:
        """The reason why Kafka can't be reached, as of the last `poll`; None if it has answered since."""
        return self._connection.trouble

    def reachable(self, timeout: float = METADATA_SECONDS) -> bool:
        """True if the broker answers now."""
        try:
            self._consumer.get_watermark_offsets(TopicPartition(self._topics[0], 0), timeout=timeout)
        except KafkaException:
            return False
        self._connection.answered()
        return True

    def end(self, topic: str, partition: int) -> int:
        """The offset at which a partition ends now, of any topic. Raises UnavailableError if Kafka doesn't
        tell.
        """
        return self._ends_of(TopicPartition(topic, partition))[1]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    @property
    def from_beginning(self) -> bool:
        """True if the last snapshot was of whole partitions, not only of their last offsets."""
        return self._from_beginning

    def _assign(self, last: Mapping[str, int]) -> None:
        """Start at the beginning of each partition, or `last[topic]` offsets before its end."""
        self._from_beginning = True
        found = []
        for name, number in self._partitions():
            one = TopicPartition(name, number, OFFSET_BEGINNING)
            if name in last:
                low, high = self._ends_of(one)
                one.offset = max(low, high - last[name])
                self._from_beginning &= one.offset == low
            found.append(one)
        self._take_up(found)

    def _take_up(self, partitions: list[TopicPartition]) -> None:
        self._ends.clear()
        self._assigned = len(partitions)
        self._consumer.assign(partitions)

    def _ends_of(self, partition: TopicPartition) -> tuple[int, int]:
        ends = partial(self._consumer.get_watermark_offsets, partition, timeout=METADATA_SECONDS)
        return answer_of(ends, self._connection)

    def _partitions(self) -> list[tuple[str, int]]:
        found = []
        for name in self._topics:
            try:
                topic = self._consumer.list_topics(name, timeout=METADATA_SECONDS).topics[name]
            except KafkaException as error:
                self._consumer.poll(0.01)  # calls the error callback, which has the cause
                raise self._connection.error(error) from error
            if topic.error is not None:
                missing = topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                raise (MissingTopicError if missing else UnavailableError)(
                    topic.error.str(),
                    where=f"topic {name}, {kafka_at(self._bootstrap)}",
                    hint="the registry creates the topics: start it first",
                )
            numbers = sorted(topic.partitions)
            if self._one is not None:
                numbers = [numbers[self._one % len(numbers)]]
            found += [(name, number) for number in numbers]
        return found


def passes(error: KafkaError) -> bool:
    """True for an error of a consumer that its client gets over without help.

    >>> passes(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
    True
    >>> passes(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    False
    """
    return error.retriable() or error.code() in _PASSING or error.code() in _LEADER_CHANGES


def answer_of(question: Callable[[], T], connection: Connection, seconds: float = METADATA_SECONDS) -> T:
    """The broker's answer. A broker that has just started knows no leaders yet, and one that no longer leads
    a partition refuses, so it is asked again for `seconds`. Raises UnavailableError then.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return question()
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise connection.error(error) from error
        time.sleep(_WAIT_SECONDS)


def _record(message: Message) -> Record:
    return Record(
        topic=str(message.topic()),
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        timestamp=message.timestamp()[1],
        headers=_headers(message),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes], ...]:
    found = message.headers()
    if not found:
        return ()
    pairs = found.items() if isinstance(found, dict) else found
    return tuple((name, value) for name, value in pairs if isinstance(value, bytes))


# The keys that are remembered as named. A writer with ever new keys can't fill the memory.
MOST_NAMED = 1_000
# Nor can it fill the log: so many are named at once, and then one a second.
AT_ONCE = 20


class UnreadableRecords:
    """Counts the unreadable records of one service, and logs the first one of each key.

    A writer with a fault writes the same record again and again.
    """

    def __init__(
        self,
        service: str,
        metrics: Metrics | None,
        log: structlog.typing.FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`metrics` None: the service counts them elsewhere. `clock` returns seconds."""
        self._service, self._metrics, self._log, self._clock = service, metrics, log, clock
        self._named: OrderedDict[tuple[str, bytes | None], None] = OrderedDict()
        self._free, self._filled, self._not_named = float(AT_ONCE), clock(), 0

    def report(self, record: Record, why: object) -> None:
        """A record was skipped."""
        if self._metrics is not None:
            self._metrics.inc("tamis_dead_letters_total", service=self._service, reason="undecodable")
        place = record.topic, record.key
        if place in self._named:
            return
        now = self._clock()
        self._free, self._filled = min(AT_ONCE, self._free + now - self._filled), now
        if self._free < 1:
            self._not_named += 1
            return
        self._free -= 1
        self._named[place] = None
        if len(self._named) > MOST_NAMED:
            self._named.popitem(last=False)
        self._log.error(
            "a record can't be read and is skipped; later ones of its key aren't named",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=(record.key or b"")[:200].decode(errors="replace"),
            error=f"{why!s:.500}",
            not_named=self._not_named,
        )
        self._not_named = 0

"""The newest records of topics, read backwards from their ends within limits of time and bytes."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tamis.errors import UnavailableError
from tamis.messaging.connection import Connection
from tamis.messaging.rights import READERS
from tamis.messaging.topic_reader import METADATA_SECONDS, answer_of, passes
from tamis.settings import KafkaSettings

T = TypeVar("T")

# Limits of one request: seconds of reading, and bytes of values.
SECONDS = 2.0
BYTES = 32 * 2**20
# The first step goes back by so many records of each partition, every further one by a multiple.
FIRST_STEP = 64
FACTOR = 4
_POLL_SECONDS = 0.1

Place = tuple[str, int]  # a topic and a partition


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A record that was picked. `time` is Kafka's, in microseconds."""

    topic: str
    partition: int
    offset: int
    time: int
    value: T

    @property
    def age(self) -> tuple[int, str, int, int]:
        """A newer record has a greater one."""
        return self.time, self.topic, self.partition, self.offset


@dataclass(frozen=True)
class Newest(Generic[T]):
    """The newest records that were picked, the newest first.

    `complete`: all that the topics still have was looked at, and no picked record was left out. `read` counts
    the records that were looked at, and `unreadable` those that could not be decoded.
    """

    entries: list[Entry[T]]
    complete: bool
    read: int
    unreadable: int


@dataclass
class _Search(Generic[T]):
    """One search: what it has found so far, and what it may still take. It keeps no more than `limit` of the
    records that were picked.
    """

    deadline: float
    bytes: int
    limit: int
    kept: list[tuple[tuple[int, str, int, int], Entry[T]]] = field(default_factory=list)
    left_out: bool = False
    read: int = 0
    unreadable: int = 0

    def keep(self, entry: Entry[T]) -> None:
        """Keep a record if it is one of the newest."""
        if len(self.kept) < self.limit:
            heapq.heappush(self.kept, (entry.age, entry))
        else:
            heapq.heappushpop(self.kept, (entry.age, entry))
            self.left_out = True

    def is_full(self, horizon: int) -> bool:
        """True if no record before `horizon` can be one of the newest."""
        return len(self.kept) == self.limit and self.kept[0][1].time >= horizon

    @property
    def spent(self) -> bool:
        """True if the limits of time or bytes are reached."""
        return self.bytes <= 0 or time.monotonic() >= self.deadline


class NewestReader:
    """Reads the newest records of topics, for several threads at a time; each search has its own client."""

    def __init__(self, kafka: KafkaSettings, *, seconds: float = SECONDS, most_bytes: int = BYTES) -> None:
        self._config, self._seconds, self._bytes = kafka.client_config(), seconds, most_bytes

    def read(self, topics: Sequence[str], pick: Callable[[Message], T | None], limit: int) -> Newest[T]:
        """At most `limit` records for which `pick` returns a value. A record for which `pick` raises
        ValueError, KeyError or TypeError counts as unreadable.

        Order and limit are by Kafka's timestamps. Where time or bytes run out, records are missing, and the
        answer isn't `complete`. Raises UnavailableError if Kafka can't be reached, a topic is missing or may
        not be read.
        """
        if not topics:
            return Newest([], True, 0, 0)
        connection = Connection.of(self._config)
        consumer = Consumer(
            {
                **self._config,
                "group.id": READERS,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                # No more than a search may take is held in memory beside it.
                "queued.max.messages.kbytes": self._bytes // 1024,
                "error_cb": connection,
            }
        )
        try:
            return self._search(consumer, connection, topics, pick, limit)
        except KafkaException as error:
            raise connection.error(error) from error
        finally:
            consumer.close()

    def _search(
        self,
        consumer: Consumer,
        connection: Connection,
        topics: Sequence[str],
        pick: Callable[[Message], T | None],
        limit: int,
    ) -> Newest[T]:
        lows, ends = _spans(consumer, connection, topics)
        search: _Search[T] = _Search(time.monotonic() + self._seconds, self._bytes, limit)
        open_places = {place for place, end in ends.items() if end > lows[place]}
        oldest: dict[Place, int] = {}
        step = FIRST_STEP
        finished = True
        while open_places:
            if search.spent:
                finished = False
                break
            starts = {place: max(lows[place], ends[place] - step) for place in open_places}
            found = _between(consumer, starts, {place: ends[place] for place in open_places}, pick, search)
            finished = found is not None
            if found is None:
                break
            oldest |= found
            ends |= starts
            open_places = {place for place in open_places if ends[place] > lows[place]}
            # What is older than this may be missing from a partition that was not read to its beginning.
            horizon = max((oldest.get(place, 0) for place in open_places), default=0)
            if search.is_full(horizon):
                break
            step *= FACTOR
        entries = [entry for _, entry in sorted(search.kept, reverse=True)]
        complete = finished and not open_places and not search.left_out
        return Newest(entries, complete, search.read, search.unreadable)


def _spans(
    consumer: Consumer, connection: Connection, topics: Sequence[str]
) -> tuple[dict[Place, int], dict[Place, int]]:
    """The first offset and the end of each partition."""
    lows, ends = {}, {}
    for name in topics:
        topic = consumer.list_topics(name, timeout=METADATA_SECONDS).topics[name]
        if topic.error is not None:
            raise UnavailableError(
                topic.error.str(),
                where=f"topic {name}",
                hint="the registry's principal needs Read on it: docs/security.md lists the rights",
            )
        for number in topic.partitions:
            one = TopicPartition(name, number)
            lows[name, number], ends[name, number] = answer_of(
                partial(consumer.get_watermark_offsets, one, timeout=METADATA_SECONDS), connection
            )
    return lows, ends


def _between(
    consumer: Consumer,
    starts: dict[Place, int],
    ends: dict[Place, int],
    pick: Callable[[Message], T | None],
    search: _Search[T],
) -> dict[Place, int] | None:
    """Read these spans into `search`. The answer is the oldest time of each; None if a limit was reached."""
    consumer.assign([TopicPartition(name, number, start) for (name, number), start in starts.items()])
    waiting, oldest = set(starts), dict[Place, int]()
    while waiting:
        if search.spent:
            return None
        for message in consumer.consume(500, _POLL_SECONDS):
            error, place = message.error(), (str(message.topic()), message.partition() or 0)
            if error is not None:
                # Behind the last record there may be markers of transactions, which no position counts.
                if error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(place)
                elif not passes(error):
                    raise KafkaException(error)
            elif (message.offset() or 0) < ends[place]:
                moment = message.timestamp()[1] * 1000
                oldest[place] = min(moment, oldest.get(place, moment))
                _take(message, moment, pick, search)
        # A span may end in a gap, so the position decides, not the span's last record.
        asked = [TopicPartition(name, number) for name, number in waiting]
        for one in consumer.position(asked):
            if one.offset >= ends[one.topic, one.partition]:
                waiting.discard((one.topic, one.partition))
    return oldest


def _take(message: Message, moment: int, pick: Callable[[Message], Any], search: _Search[Any]) -> None:
    search.read += 1
    search.bytes -= len(message.value() or b"")
    try:
        value = pick(message)
    except (ValueError, KeyError, TypeError):
        search.unreadable += 1
        return
    if value is not None:
        place = (str(message.topic()), message.partition() or 0, message.offset() or 0)
        search.keep(Entry(*place, moment, value))

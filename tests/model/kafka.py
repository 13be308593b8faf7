"""Stand-ins for Kafka, disks and sources: lists, in which each step of a record's way is a separate step."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import orjson
from tests.model.readings import Reading, Shard

from tamis.errors import UnavailableError
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.plan import parts
from tamis.plan.json_form import decode_plan
from tamis.plan.model import Plan
from tamis.recordings.json_values import Offence
from tamis_edge.core import max_ahead
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.storage.disk import DiskError

Place = tuple[str, int]  # topic and partition

# Bytes never change, and every edge and partition reads the same plan.
decode_once = lru_cache(256)(decode_plan)


@lru_cache(1024)
def cut_once(document: bytes, stream: str) -> Plan:
    """The plan as an edge decodes it whose only sources are of this raw stream."""
    return decode_plan(parts.cut(document, {stream}))


class Heard(NamedTuple):
    """A record of a stream topic as the oracle reads it. `time` is the event time of a tuple or of progress,
    and `number` the reading's.
    """

    kind: str  # tuple, progress, final
    shard: str
    version: int
    time: int
    number: int


@dataclass
class Log:
    """One partition of a stream topic."""

    values: list[bytes] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    def append(self, value: bytes) -> Heard:
        document = orjson.loads(value)
        envelope = document["_"]
        heard = Heard(
            envelope.get("kind", "tuple"),
            envelope["shard"],
            envelope["plan"],
            envelope.get("event_time", document.get("ts", 0)),
            document.get("n", -1),
        )
        self.values.append(value)
        self.heard.append(heard)
        return heard


class Queued(NamedTuple):
    """A record that the producer has taken."""

    topic: str
    partition: int
    value: bytes
    report: Callable[[Any, Any], None] | None


class Producer:
    """confluent_kafka's Producer as the publisher uses it: order within a partition, reports on `poll`."""

    def __init__(self) -> None:
        self.queue: list[Queued] = []
        self._reports: deque[Callable[[Any, Any], None]] = deque()

    def produce(  # noqa: PLR0917 - as confluent_kafka's
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int,
        callback: Any = ...,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        # Two names of one thing: the first counts where it is given, even None.
        report = on_delivery if callback is ... else callback
        self.queue.append(Queued(topic, partition, value, report))

    def deliver(self, r: random.Random) -> Queued:
        """The broker takes the first record of some partition."""
        place = r.choice(self.queue)[:2]
        return self._arrived(next(i for i, record in enumerate(self.queue) if record[:2] == place))

    def deliver_first(self) -> Queued:
        """The broker takes the oldest record."""
        return self._arrived(0)

    def poll(self, timeout: float) -> int:
        while self._reports:
            self._reports.popleft()(None, None)
        return 0

    def _arrived(self, at: int) -> Queued:
        record = self.queue.pop(at)
        if record.report is not None:
            self._reports.append(record.report)
        return record


# Shard, place and record of what is spooled.
Waiting = tuple[str, int, Record]


class Spool:
    """The edge's spool; `rows` are on its disk and outlive it."""

    full = False

    def __init__(self, rows: dict[int, Waiting], disk_full: Callable[[], bool] = lambda: False) -> None:
        """`disk_full`: whether the disk has no room now, not even for deleting."""
        self.rows = rows
        self._disk_full = disk_full
        self._taken = 0

    @property
    def records(self) -> int:
        return len(self.rows)

    @property
    def waiting(self) -> bool:
        return self._taken < max(self.rows, default=0)

    def delete_from(self, shard: str, done: int, number: int | None = None) -> None:
        for row, (of, place, _) in list(self.rows.items()):
            if of == shard and (place >= done or (number is not None and place <= ~number)):
                del self.rows[row]

    def append(self, shard: str, records: Sequence[Record], places: Sequence[int]) -> None:
        self._need_room()
        # Numbers are never used again (AUTOINCREMENT): what is on its way still has its own.
        first = 1 + max([*self.rows, self._taken])
        self.rows.update(enumerate(zip(repeat(shard), places, records, strict=False), first))

    def take(self, limit: int, size: int) -> list[Record]:
        found = [row for row in sorted(self.rows) if row > self._taken][:limit]
        self._taken = max(found, default=self._taken)
        return [self.rows[row][2]._replace(token=row) for row in found]

    def delivered(self, tokens: Iterable[int]) -> None:
        self._need_room()
        for token in tokens:
            del self.rows[token]

    def _need_room(self) -> None:
        if self._disk_full():
            raise DiskError("the disk is full")


@dataclass
class Durable:
    """What of a shard survives its edge. `source`: to whom Kafka has assigned it, of shards that can move."""

    commit: Commit = field(default_factory=Commit)
    final: bool = False
    source: Source | None = None
    # By plan version that was committed, the offset at which the shard took it up.
    begun: dict[int, int] = field(default_factory=dict)

    def keep(self, commit: Commit, source: Source) -> None:
        """A commit of an edge has become durable."""
        self.commit = commit
        if commit.version in source.taken_up:
            self.begun.setdefault(commit.version, source.taken_up[commit.version])


@dataclass(eq=False)
class Landing:
    """A commit that is on its way to be durable."""

    source: Source
    commit: Commit
    final: bool
    done: Future[None]

    def land(self, fails: bool) -> None:
        """It becomes durable, or not. Kafka refuses the commit of a consumer that has lost the partition."""
        kept = self.source.durable
        moved = self.source.movable and kept.source is not self.source
        if moved or fails:
            self.done.set_exception(UnavailableError("the commit failed"))
            return
        kept.keep(self.commit, self.source)
        kept.final = self.final
        self.source.known = self.commit
        self.done.set_result(None)


@dataclass
class Ready:
    """A delivery that is decoded already."""

    offsets: np.ndarray
    arrivals: np.ndarray
    columns: dict[str, Vector]
    replayed: bool
    size: int = 0

    def decode(self, decoder: Decoder, now: int) -> Decoded:
        far = max_ahead.too_far(self.columns["ts"].data, now, max_ahead.limit(decoder.stream, self.replayed))
        refused = np.zeros(len(far), np.bool_)
        for column in decoder.stream.columns:
            if column.check is not None:
                found = evaluate(column.check, {("", n): v for n, v in self.columns.items()}, len(far))
                refused |= ~found.data.astype(np.bool_)  # no reading has NULL here
        good = np.flatnonzero(~far & ~refused)
        names = [column.name for column in decoder.stream.columns]
        columns = {name: self.columns[name].take(good) for name in names}
        offences = [Offence(row, Reason.AHEAD_OF_CLOCK, "") for row in np.flatnonzero(far).tolist()]
        offences += [
            Offence(row, Reason.OUT_OF_DOMAIN, "") for row in np.flatnonzero(refused & ~far).tolist()
        ]
        return Decoded(good, columns, self.columns["ts"].take(good).data, offences)

    def payload(self, row: int) -> bytes:
        return b"{}"


_COLUMNS = {
    "k": Type.VARCHAR,
    "ts": Type.TIMESTAMP,
    "h": Type.VARCHAR,
    "v": Type.DOUBLE,
    "u": Type.DOUBLE,
    "f": Type.BOOLEAN,
    "g": Type.BIGINT,
    "n": Type.BIGINT,
    "w": Type.BIGINT,
    "added": Type.BIGINT,
}
_FIELDS = {"ts": "t", "n": "number", "added": "g"}


def columns_of(rows: Sequence[Reading]) -> dict[str, Vector]:
    """Readings as an edge decodes them."""
    return {
        name: Vector.from_list([getattr(row, _FIELDS.get(name, name)) for row in rows], type_)
        for name, type_ in _COLUMNS.items()
    }


class Source:
    """A shard at one edge, in one life: `SourceShard`."""

    topic, partition = "readings", 0
    fields = FieldMap()
    declared = True
    rereadable = True
    caught_up = False

    def __init__(self, shard: Shard, durable: Durable, landings: list[Landing]) -> None:
        self.shard, self.durable, self._landings = shard, durable, landings
        self.name, self.stream, self.movable = shard.name, shard.stream, shard.kind == "kafka"
        self.replayed = shard.kind == "file"
        self.known = durable.commit
        self.taken_up: dict[int, int] = {}
        self._next: int | None = None

    @property
    def ended(self) -> bool:
        return self.shard.kind == "file" and self._next == len(self.shard.log)

    def committed(self) -> tuple[Commit, bool]:
        return self.known, self.durable.final and not self.movable

    def start(self, offset: int, decoder: Decoder) -> None:
        self._next = offset

    def confirm_end(self) -> None:
        """It never tells its end."""

    def read_through(self, next_offset: int) -> bool:
        return False

    def decode_by(self, decoder: Decoder) -> None:
        """Deliveries are decoded when they are taken."""

    def stop(self) -> None:
        self._next = None

    def poll(self, limit: int, now: int) -> Ready | None:
        if self._next is None or self._next >= self.shard.available:
            return None
        rows = self.shard.log[self._next : min(self.shard.available, self._next + limit)]
        offsets = np.arange(self._next, self._next + len(rows))
        self._next += len(rows)
        return Ready(offsets, np.full(len(rows), now), columns_of(rows), self.replayed or self.shard.swallows)

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        done: Future[None] = Future()
        self._landings.append(Landing(self, commit, final, done))
        return done

"""The records that a shard has to send: tuples, dead letters, progress and final records, and their counts.

It keeps the source offsets of those records that could still be lost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.records import final_envelope, progress_envelope
from tamis.messaging.schemas.tuple_encoding import encode_alone, encode_tuples
from tamis.messaging.schemas.tuple_schema import layout
from tamis.messaging.topics import DEAD_LETTERS
from tamis.omission.columns import Int64s
from tamis.plan.model import StreamPlan
from tamis_edge.core.records import (
    ANY_PARTITION,
    Record,
    encode,
    message_columns,
    placed_tails,
    records,
    schema_envelopes,
    tail,
)
from tamis_edge.core.rows import Chunk
from tamis_edge.core.shedding import Shedder, ShedSpans
from tamis_edge.core.topic_run import TopicRun

START_OF_TIME = -(2**62)  # before every event time, and far enough from int64's end to subtract from

# Microseconds after which unchanged progress is sent again, so that it outlives the topic's retention.
REFRESH = 30_000_000

Progress = Mapping[tuple[str, int], int]
"""By topic and output partition, the least event time that can still be published there."""


class SentProgress:
    """The progress that was sent. Records must be sent in order, or be reported by `forget`.

    `every`: microseconds that must pass between two progress records of a plan version in one partition.
    """

    def __init__(self, every: int = 0) -> None:
        self._every = every
        self._sent: dict[tuple[str, int], tuple[int, int]] = {}  # plan version and event time
        self._at = 0  # when all progress was due again
        self._next, self._version = 0, 0

    def changed(
        self, progress: Progress, version: int, now: int, *, last: bool = False
    ) -> Iterator[tuple[str, int, int]]:
        """The progress to send under a plan version: topic, partition and event time. From then on it counts
        as sent. `last`: final records follow it.
        """
        if not 0 <= now - self._at < REFRESH:
            self._sent, self._at = {}, now
        # Others wait for the first progress under a plan and for the last one, so they aren't held back.
        # The clock may have been set back, so only a time that is near counts.
        waits = 0 < self._next - now <= self._every
        if waits and version == self._version and not last:
            return
        for place, time in progress.items():
            if self._sent.get(place) != (version, time):
                self._sent[place] = version, time
                self._next, self._version = now + self._every, version
                yield *place, time

    def forget(self) -> None:
        """Some record was not sent, so all progress must be sent again."""
        self._sent.clear()
        self._next = 0


# The decisions about tuples of raw streams.
DECISIONS = ("published", "omitted", "filtered", "late", "dead", "aggregated")


@dataclass(slots=True)
class PartialCounts:
    """Records of partial aggregates, with their rows and bytes."""

    records: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Counts:
    """Tuples by decision, and published bytes, since the counts were last taken. `partials`: by topic."""

    published: int = 0
    omitted: int = 0
    filtered: int = 0
    late: int = 0
    dead: int = 0
    aggregated: int = 0  # only in partial aggregates, and not late
    saved_calls: int = 0  # omitted tuples for which the joiner would call a Python function
    shed: int = 0  # retained and dropped at random; counted once for each topic
    published_bytes: int = 0
    partials: defaultdict[str, PartialCounts] = field(default_factory=lambda: defaultdict(PartialCounts))
    holds: list[Int64s] = field(default_factory=list)  # microseconds from arrival to publication


class Origin(NamedTuple):
    """The origin that a shard's messages name, and the time at which they are made.

    The position of a tuple is `born` plus its offset (see `Commit`). `reached`: for each output partition,
    the last progress that was sent, if any. `fences`: by topic, the number of the last fence.
    """

    shard: str
    version: int
    activation: int
    born: int
    now: int
    reached: Progress
    fences: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class Ledger:
    """Counts of tuples, and the records of tuples that could still be lost.

    `taken` has the tuples by decision before the counts were last taken. `unsafe` has the offset of the first
    reading in each such record by the record's token; on watched streams, the reading's number.
    """

    counts: Counts = field(default_factory=Counts)
    unsafe: dict[int, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DECISIONS, 0))

    def take_counts(self) -> Counts:
        """The counts since the last call."""
        self.taken = self.totals()
        counts, self.counts = self.counts, Counts()
        return counts

    def totals(self) -> dict[str, int]:
        """The tuples by decision since the beginning of the run."""
        return {name: amount + getattr(self.counts, name) for name, amount in self.taken.items()}


class Outbox:
    """Records in the order in which they must be sent. Each has a token, which identifies it when it is
    reported as safe.
    """

    def __init__(self, shedder: Shedder | None = None) -> None:
        """`shedder` drops retained tuples while its `share` is above 0."""
        self.records: deque[Record] = deque()
        self.raw, self.watched = Ledger(), Ledger()
        self.final_version = 0  # plan version under which the final records went out
        self._tokens = 0
        self._finals: set[int] = set()  # tokens of final records that aren't safe
        self._finals_version = 0
        self._shedder, self._spans = shedder, ShedSpans()

    def token(self) -> int:
        """A new token."""
        self._tokens += 1
        return self._tokens

    def add(self, topic: str, partition: int, value: bytes, now: int) -> int:
        """Add a record without key; returns its token."""
        token = self.token()
        self.records.append(Record(token, topic, partition, None, value, now // 1000))
        return token

    def add_dead_letter(self, letter: DeadLetter, arrival: int) -> None:
        """Add the dead letter of a reading. `arrival`: wall clock in milliseconds."""
        self.raw.counts.dead += 1
        token = self.token()
        self.raw.unsafe[token] = letter.offset
        headers = letter.headers()
        self.records.append(
            Record(token, DEAD_LETTERS, ANY_PARTITION, None, letter.payload, arrival, headers)
        )

    def add_finals(self, topics: Iterable[TopicRun], partitions: int, origin: Origin) -> None:
        """Add the final records of all topics, unless they are already in flight."""
        if self._finals or self.final_version >= origin.version:
            return
        self._finals_version = origin.version
        for topic in topics:
            envelope = final_envelope(origin.shard, origin.version, origin.fences.get(topic.plan.name, 0))
            value = encode_alone(topic.schema, envelope)
            for partition in range(partitions):
                self._finals.add(self.add(topic.plan.name, partition, value, origin.now))
        if not self._finals:
            self.final_version = origin.version

    def add_tuples(
        self,
        topic: TopicRun,
        chunk: Chunk,
        rows: Int64s,
        *,
        stream: StreamPlan,
        origin: Origin,
        ledger: Ledger,
        late: Int64s | None,
    ) -> None:
        """Add the tuples at `rows` of a chunk, except those that are shed. `ledger`: `raw`, or `watched` if
        the offsets of the chunk are numbers. `late`: the ids of late tuples, ascending.
        """
        rows = self._shed(topic, chunk, rows, origin, ledger)
        if len(rows) == 0:
            return
        behind = np.isin(chunk.ids[rows], late) if late is not None else np.zeros(len(rows), np.bool_)
        # Late tuples have a count of their own.
        counts = ledger.counts
        counts.published += int(np.count_nonzero(~chunk.published[rows] & ~behind))
        chunk.published[rows] = True
        batch = chunk.batch
        # A reading may have come since this turn began, and the clock may be set back.
        counts.holds.append(np.maximum(origin.now - batch.arrivals[rows], 0))
        codes = chunk.codes[topic.serial][rows]
        encoded = topic.keys.encoded
        keys = [encoded[code] for code in codes.tolist()]
        shard, version, activation = origin.shard, origin.version, origin.activation
        places = (origin.born + batch.offsets[rows]).tolist() if topic.plan.counted else None
        columns = message_columns(batch, rows, stream, topic.plan)
        if topic.schema is not None:
            marks = behind.tolist() if places is not None else [late is not None] * len(rows)
            envelope = {"shard": shard, "plan": version, "activation": activation}
            starts = schema_envelopes(topic.schema, envelope, places, marks)
            values = encode_tuples(topic.schema, layout(stream, topic.plan), columns, starts)
        elif places is not None:
            fence = origin.fences.get(topic.plan.name, 0)
            values = encode(
                columns, placed_tails(shard, version, activation, places, behind.tolist(), fence=fence)
            )
        else:
            values = encode(columns, [tail(shard, version, activation, late is not None)] * len(rows))
        counts.published_bytes += sum(map(len, keys)) + sum(map(len, values))
        tokens = range(self._tokens + 1, self._tokens + 1 + len(keys))
        self._tokens = tokens[-1]
        ledger.unsafe.update(zip(tokens, batch.offsets[rows].tolist(), strict=True))
        self.records.extend(
            records(
                tokens,
                topic.plan.name,
                partitions=topic.keys.partitions(codes).tolist(),
                keys=keys,
                values=values,
                arrivals=(batch.arrivals[rows] // 1000).tolist(),
            )
        )

    def _shed(self, topic: TopicRun, chunk: Chunk, rows: Int64s, origin: Origin, ledger: Ledger) -> Int64s:
        """Drop the tuples that the shedder picks; returns the others.

        A record with the span of the dropped event times replaces them. Their offsets are done only when that
        record is safe.
        """
        # The joiner can't make up for a dropped tuple that is counted: such tuples wait instead.
        if self._shedder is None or topic.plan.counted:
            return rows
        kept = self._shedder.kept(len(rows))
        if kept is None or kept.all():
            return rows
        gone = rows[~kept]
        ledger.counts.shed += len(gone)
        chunk.published[gone] = True  # omission did not drop them
        partitions = topic.keys.partitions(chunk.codes[topic.serial][gone])
        name = topic.plan.name
        for partition in np.unique(partitions).tolist():
            dropped = gone[partitions == partition]
            offset = int(chunk.batch.offsets[dropped].min())
            found = self._spans.add(name, partition, chunk.batch.times[dropped])
            if isinstance(found, int):
                if found in ledger.unsafe:
                    ledger.unsafe[found] = min(ledger.unsafe[found], offset)
                continue
            time = origin.reached.get((name, partition), START_OF_TIME)
            known = None if time == START_OF_TIME else time
            # Not of a topic with a fence: its readings are counted, and none of them is shed.
            envelope = progress_envelope(origin.shard, origin.version, origin.activation, known, found)
            value = encode_alone(topic.schema, envelope)
            token = self.add(name, partition, value, origin.now)
            self._spans.sent(name, partition, found, token)
            ledger.unsafe[token] = offset
        left: Int64s = rows[kept]
        return left

    def safe(self, *tokens: int) -> None:
        """The records of these tokens can't be lost any more: Kafka has them, or they are in the spool and
        the shard can't move to another edge.
        """
        raw, watched = self.raw.unsafe, self.watched.unsafe
        for token in tokens:
            carried = raw.pop(token, None) is not None or watched.pop(token, None) is not None
            if not carried and token in self._finals:
                self._finals.discard(token)
                if not self._finals:
                    self.final_version = self._finals_version

    def forget_finals(self) -> None:
        """Forget the final records in flight. One of them was not sent, so all must be made again."""
        self._finals.clear()

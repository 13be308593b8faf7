"""One partition of a Kafka source: its readings that wait to be polled, and its distance from the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

import numpy as np

from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.base import READ_BYTES, Delivery, Payloads
from tamis_edge.sources.kafka.schemas import FetchedSchemas, SchemaPayloads

BUFFER = 6_000  # messages of one partition that wait here before it is paused
MANY = 1_000  # readings that a restart would read again, from which on it matters if Kafka deletes them
STALLED = 10.0  # seconds that readings wait in Kafka without one coming before that is reported


class Member(Protocol):
    """The member of a consumer group to which partitions are assigned."""

    def resume(self, shard: KafkaShard, offset: int | None) -> None:
        """Deliver the partition, from `offset` on if it is given."""
        ...

    def pause(self, shard: KafkaShard) -> None:
        """Deliver nothing of the partition for now."""
        ...

    def confirm_end(self) -> None:
        """Ask now for the ends of partitions that wait for it; answers to earlier questions don't count."""
        ...

    def commit(self, shard: KafkaShard, commit: Commit) -> Future[None]:
        """Commit an offset and its metadata for the group."""
        ...


class KafkaShard:
    """One assigned partition."""

    movable = True
    declared = True
    rereadable = True
    replayed = False
    ended = False

    def __init__(
        self,
        owner: Member,
        source: KafkaSource,
        partition: int,
        commit: Commit,
        clock: Callable[[], float],
        *,
        schemas: FetchedSchemas | None = None,
    ) -> None:
        """`clock`: monotonic seconds. `schemas`: of the source's readings, where they aren't JSON."""
        self._clock, self._schemas = clock, schemas
        self.name = f"{source.stream}:{source.topic}/{partition}"
        self.stream, self.topic, self.partition, self.fields = (
            source.stream,
            source.topic,
            partition,
            source.fields,
        )
        self.at_end = False  # all readings of the partition were delivered or are in the buffer
        # Where the partition ended after the last `confirm_end`; None while that isn't known.
        self.known_end: int | None = 0
        self._owner, self._commit = owner, commit
        self.buffer: deque[Payloads] = deque()
        self.waiting = self.bytes = 0  # readings in the buffer, and their bytes
        self.next: int | None = None  # the offset that should come next; None: the first
        self.heard = 0.0  # when the partition was last heard of, monotonic seconds
        self.behind = 0  # readings that waited in Kafka when its end was last asked for
        self.behind_since: float | None = None  # monotonic seconds, since a reading came
        self.misplaced = False  # the partition doesn't have the offset that comes next
        self.first: int | None = None  # the first offset that Kafka had when it was last asked
        self.started = False
        self.paused = True
        self._fresh = True

    @property
    def caught_up(self) -> bool:
        # The end is reported once, maybe while messages from before it still wait.
        return self.at_end and not self.buffer

    def confirm_end(self) -> None:
        self.known_end = None
        self._owner.confirm_end()

    def read_through(self, next_offset: int) -> bool:
        if self.known_end is None:
            return False
        # Behind the last reading there may be offsets that never come, those of markers of transactions.
        return next_offset >= self.known_end or (self.caught_up and (self.next or 0) >= self.known_end)

    def committed(self) -> tuple[Commit, bool]:
        return self._commit, False

    def start(self, offset: int, decoder: Decoder) -> None:
        # The assignment began at the commit; only a later start has to go back to it.
        self._owner.resume(self, None if self._fresh else offset)
        self.next, self.known_end = offset or None, 0
        self.started, self._fresh = True, False

    def decode_by(self, decoder: Decoder) -> None:
        """Payloads are the same whatever their stream is."""

    def stop(self) -> None:
        self.started = self.at_end = self.misplaced = False
        self.behind_since = None
        self._owner.pause(self)
        self.buffer.clear()
        self.waiting = self.bytes = 0

    def put(self, offsets: list[int], values: list[bytes], now: int) -> None:
        """Buffer readings that came together."""
        size = sum(map(len, values))
        self.at_end, self.heard, self.behind_since = False, self._clock(), None
        self.next = offsets[-1] + 1
        self.waiting += len(offsets)
        self.bytes += size
        step = len(offsets) if size < READ_BYTES // 4 else 1
        for start in range(0, len(offsets), step):
            some = np.array(offsets[start : start + step], np.int64)
            self.buffer.append(Payloads(some, np.full(len(some), now), values[start : start + step]))

    def ended_at(self, offset: int) -> None:
        """The client has reached the end of the partition, at `offset`."""
        self.at_end, self.heard, self.behind_since = True, self._clock(), None
        self.next = max(self.next or 0, offset)

    def ends_at(self, offset: int) -> None:
        """The broker has answered that the partition ends at `offset`."""
        # Before the first reading or the first report of an end, the partition's first offset isn't known.
        self.behind = offset - (self.next or 0)
        self.at_end = self.next is not None and self.behind <= 0
        # A topic that was made anew ends before.
        self.known_end = offset if self.known_end is None else min(self.known_end, offset)
        if self.behind <= 0:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = self._clock()

    @property
    def stalled(self) -> float | None:
        """The seconds for which readings have waited in Kafka while none arrived; None if that is short."""
        if not self.started or self.paused or self.buffer or self.behind_since is None:
            return None
        seconds = self._clock() - self.behind_since
        return seconds if seconds > STALLED else None

    def poll(self, limit: int, now: int) -> Delivery | None:
        found = self._take(limit)
        if found is None or self._schemas is None:
            return found
        count, schemas = self._schemas.find(found.payloads)
        if count < len(found.offsets):
            # The next reading waits for its schema, and all others behind it.
            found, rest = found.split(count)
            self.buffer.appendleft(rest)
            self.waiting += len(rest.offsets)
            self.bytes += rest.size
        if not count:
            return None
        return SchemaPayloads(found.offsets, found.arrivals, found.payloads, schemas=schemas)

    def _take(self, limit: int) -> Payloads | None:
        """At most `limit` readings of the buffer, and about `READ_BYTES`."""
        parts: list[Payloads] = []
        count = size = 0
        while self.buffer and count < limit and size < READ_BYTES:
            part = self.buffer.popleft()
            if count + len(part.offsets) > limit:
                part, rest = part.split(limit - count)
                self.buffer.appendleft(rest)
            parts.append(part)
            count += len(part.offsets)
            size += part.size
        if not parts:
            return None
        self.waiting -= count
        self.bytes -= size
        return parts[0] if len(parts) == 1 else Payloads.concat(parts)

    @property
    def holds_back(self) -> bool:
        """True if the commit waits for readings in partial aggregates."""
        return self._commit.cuts is not None

    @property
    def deletes_soon(self) -> bool:
        """True if Kafka may soon delete readings that a restart would read again: it has fewer before them
        than the shard would read again, which are many.
        """
        done = self._commit.done
        again = (self.next or done) - done
        return self.first is not None and again > max(MANY, done - self.first)

    @property
    def full(self) -> bool:
        """True if so many readings are buffered that the partition should pause."""
        return self.waiting > BUFFER or self.bytes > READ_BYTES

    @property
    def nearly_empty(self) -> bool:
        """True if so few readings are buffered that the partition should resume."""
        return self.waiting < BUFFER // 4 and self.bytes < READ_BYTES // 4

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return self._owner.commit(self, commit)

    def commit_is(self, commit: Commit) -> None:
        """The group has this commit now."""
        self._commit = commit

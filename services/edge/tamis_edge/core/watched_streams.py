"""The watched streams of a shard: their topics, and the readings that wait for the watermark.

A watched stream is the shard's stream with columns that depend on the readings before, in the order of their
event times. So its readings are *released* in that order when the watermark reaches them, and only then are
they offered to its topics. Released readings are numbered. The number is the position of a tuple that is
counted. It is the same when a restart releases the reading again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from tamis.declarations.watches import AnyWatch
from tamis.omission.columns import NEVER, Int64s
from tamis.plan.model import Plan, StreamColumn, StreamPlan
from tamis.watching.watched_columns import AddedColumns, WatchedColumns, no_values
from tamis_edge.core.commit import Commit, WatchedCommit
from tamis_edge.core.outbox import START_OF_TIME, Ledger, Progress
from tamis_edge.core.rows import Batch, Chunk
from tamis_edge.core.served_topics import ServedTopics
from tamis_edge.core.topic_run import TopicRun
from tamis_edge.core.watched_readings import Checkpoints, EventOrder, KeySeries, MatchingRows

# The columns of a stream, its event time, and its KEY columns.
_Columns = tuple[tuple[StreamColumn, ...], str | None, tuple[str, ...]]


Send = Callable[[TopicRun, Chunk, Int64s, StreamPlan, Int64s | None], None]
"""Sends the tuples at some rows of a chunk on; the last argument has the ids of those that are late."""


@dataclass(frozen=True)
class Start:
    """Where the series of a shard begin.

    They consist of the readings from `offset` on with an event time of at least `floor`. No reading before
    `offset` has a greater event time than `floor`. `number` is that of the first released reading.

    Readings that an earlier run has decided are in the series, but are neither numbered nor offered to
    topics. These have an offset before `read`, and an event time before `known_time`, or at it and an offset
    before `known_offset`.
    """

    floor: int
    offset: int
    watermark: int
    number: int
    read: int = 0
    known_time: int = START_OF_TIME
    known_offset: int = 0

    @staticmethod
    def of(commit: Commit) -> Start | None:
        """The start after a commit; None if the commit has no watched streams."""
        found = commit.watched
        if found is None:
            return None
        return Start(
            found.floor, commit.done, START_OF_TIME, found.number, commit.read, found.time, found.offset
        )

    def known(self, batch: Batch) -> np.ndarray:
        """A mask of the readings that an earlier run has decided."""
        before = (batch.times < self.known_time) | (
            (batch.times == self.known_time) & (batch.offsets < self.known_offset)
        )
        found: np.ndarray = before & (batch.offsets < self.read)
        return found


class _Release(NamedTuple):
    """A batch of released readings: the number, event time and offset of its first reading, and an event time
    before which none of their windows begins.
    """

    number: int
    time: int
    offset: int
    needed: int


@dataclass
class _Watched:
    """One watched stream. `watches`: the places of its watches among all watches of the shard."""

    served: ServedTopics
    rows: MatchingRows
    watches: list[int] = field(default_factory=list)


class WatchedStreams:
    """All watched streams of a shard. Without any, it does nothing.

    `watermark` is the one of these streams. After a restart it may be ahead of the watermark of the stream
    itself, because readings are read again that the stream itself has decided.
    """

    def __init__(self, base: str, commit: Commit, ledger: Ledger, send: Send) -> None:
        """`base`: the shard's stream. `ledger`: of released readings."""
        self._base, self._ledger, self._send = base, ledger, send
        self._resume = Start.of(commit)
        self._streams: dict[str, _Watched] = {}
        self._columns: _Columns | None = None  # by which another stream of the same name is recognised
        self._watches: tuple[AnyWatch, ...] = ()
        self._matches: Counter[str] = Counter()
        self._now = self._next = 0
        self._begin(Start(START_OF_TIME, 0, START_OF_TIME, 0), ())

    def __bool__(self) -> bool:
        return bool(self._streams)

    # ---- the plan

    def serve(self, plan: Plan, start: Start, *, whole: bool) -> None:
        """Serve the watched streams of a plan. `start`: where the series begin if there were none before.
        `whole`: nothing is omitted.
        """
        raw, streams = plan.stream(self._base), plan.watched(self._base)
        columns = (raw.columns, raw.time, streams[0].series_key) if raw is not None and streams else None
        before, self._columns = self._columns, columns
        if columns is not None and before is not None and _extends(columns, before):
            # The series go on. Readings that wait have no values in new columns.
            before = columns
            self._order.add_columns({column.name: column.type for column in columns[0]})
        if before not in (None, columns):
            # The readings that wait have the columns of the previous plan.
            self._release(int(NEVER))
        self._serve_each(plan, {stream.name: stream for stream in streams}, whole=whole)
        if columns is not None and before != columns:
            self._begin(self._resume or start, streams[0].series_key)
        self._resume = None
        self._watch(streams)

    def _serve_each(self, plan: Plan, streams: dict[str, StreamPlan], *, whole: bool) -> None:
        for name in self._streams.keys() - streams.keys():
            served = self._streams.pop(name).served
            served.serve(plan, None, partial(self._publish, served), whole=whole)
        for name, stream in streams.items():
            known = self._streams.get(name)
            served = ServedTopics(plan.partitions) if known is None else known.served
            served.serve(plan, stream, partial(self._publish, served), whole=whole)
            self._streams[name] = _Watched(served, MatchingRows(stream))

    def _watch(self, streams: Sequence[StreamPlan]) -> None:
        watches = tuple(dict.fromkeys(watch for stream in streams for watch in stream.all_watches))
        places = {watch: place for place, watch in enumerate(watches)}
        for stream in streams:
            self._streams[stream.name].watches = [places[watch] for watch in stream.all_watches]
        if watches != self._watches:
            self._watches = watches
            self._series.watch(watches)

    def begin_anew(self, offset: int) -> None:
        """Forget the event times that were reached. What waits is released; `offset` comes next."""
        self._resume = None
        if self:
            self._release(int(NEVER))
            self._begin(Start(START_OF_TIME, offset, START_OF_TIME, self._number), self._series.key)
            self._series.watch(self._watches)

    def _begin(self, start: Start, key: tuple[str, ...]) -> None:
        self._start, self._number, self.watermark = start, start.number, start.watermark
        self._latest = self._needed = start.floor
        self._checkpoints = Checkpoints(start.offset, start.floor)
        self._order, self._series = EventOrder(), KeySeries(key)
        self._watches = ()
        self._releases: deque[_Release] = deque()

    # ---- readings

    def take(self, batch: Batch, delay: int) -> None:
        """Take readings in the order of their offsets.

        A late reading matches no pattern, and window functions are NULL for it. If a filter lets it pass
        nevertheless, it is published at once, unless its tuple is counted.
        """
        reached = np.maximum.accumulate(np.append(self.watermark, batch.times - delay))
        in_series = (batch.times >= reached[:-1]) & (batch.times >= self._start.floor)
        self._checkpoints.add(int(batch.offsets[0]), self._latest)
        self._latest = max(self._latest, int(batch.times.max()))
        self._next = int(batch.offsets[-1]) + 1
        self.watermark = int(reached[-1])
        if in_series.all():
            self._order.add(batch)
            return
        self._order.add(batch.take(in_series))
        # What an earlier run has read and isn't needed again is not late.
        self._forward(batch.take(~in_series & (batch.offsets >= self._start.read)))

    def source_begins_anew(self, offset: int) -> None:
        """The source was made anew: its readings before now can't be read again."""
        self._checkpoints = Checkpoints(offset, self._latest)
        self._start = Start(START_OF_TIME, offset, self.watermark, self._number)

    def advance(self, watermark: int) -> None:
        """The watermark has moved without a reading."""
        self.watermark = max(self.watermark, watermark)

    def settle(self, now: int) -> None:
        """Release the readings that the watermark has reached, and decide on all tuples for which watermark
        and clock allow it.
        """
        if self:
            self._now = now
            self._release(self.watermark)
            for one in self._streams.values():
                for topic in one.served.topics.values():
                    self._publish(one.served, topic, topic.decide(self.watermark, now))

    def publish_held(self) -> None:
        """Publish all undecided tuples."""
        for one in self._streams.values():
            for topic in one.served.topics.values():
                self._publish(one.served, topic, topic.release())

    def _forward(self, late: Batch) -> None:
        """Publish late readings, whose columns are NULL."""
        if not len(late):
            return
        none = [no_values(watch, len(late)) for watch in self._watches]
        ids, published = np.arange(len(late)), np.zeros(len(late), np.bool_)
        for one in self._streams.values():
            if not len(one.rows.of([none[place] for place in one.watches], len(late))):
                continue
            batch = _with_columns(late, ids, [none[place] for place in one.watches])
            matched = one.served.match(batch)
            self._ledger.counts.late += int(np.count_nonzero(matched.concerned))
            chunk = Chunk(ids, batch, matched.codes, published)
            for topic, _, any_entry in matched.topics:
                if not topic.plan.counted:
                    self._send(topic, chunk, np.flatnonzero(any_entry), _plan(one.served), ids)

    def _release(self, watermark: int) -> None:
        """Release the readings with an event time up to the watermark."""
        batch = self._order.release(watermark)
        if batch is None:
            return
        found = self._series.push(batch)
        new = np.flatnonzero(~self._start.known(batch)) if self._start.read else np.arange(len(batch))
        if self._start.read <= self._next and watermark > self._start.known_time:
            self._start = replace(self._start, read=0)  # from now on all readings are new
        if not len(new):
            return
        first = (int(batch.times[new[0]]), int(batch.offsets[new[0]]))
        self._releases.append(_Release(self._number, *first, self._needed))
        numbers = np.full(len(batch), -1)
        numbers[new] = np.arange(self._number, self._number + len(new))
        self._number += len(new)
        for columns in found:
            if isinstance(columns, WatchedColumns):
                self._matches[columns.watch.asked] += int(np.count_nonzero(numbers[columns.rows] >= 0))
        for one in self._streams.values():
            mine = [found[place] for place in one.watches]
            rows = one.rows.of(mine, len(batch))
            rows = rows[numbers[rows] >= 0]
            if len(rows):
                self._offer(one.served, numbers[rows], _with_columns(batch, rows, mine))

    def _offer(self, served: ServedTopics, numbers: Int64s, batch: Batch) -> None:
        """Offer released readings to the topics of a stream. Their numbers are their ids and offsets."""
        batch = replace(batch, offsets=numbers)
        matched = served.match(batch)
        served.keep(numbers, batch, matched, np.zeros(len(batch), np.bool_))
        for topic, matches, _ in matched.topics:
            codes = matched.codes[topic.serial]
            self._publish(served, topic, topic.offer(numbers, batch, codes, matches, self._now))

    def _publish(self, served: ServedTopics, topic: TopicRun, ids: Int64s) -> None:
        if len(ids):
            for chunk, rows in served.rows.find(ids):
                self._send(topic, chunk, rows, _plan(served), None)

    # ---- commits

    def commit(self, decided: int, offset: int, *, keep_series: bool) -> tuple[int, WatchedCommit]:
        """The offset from which a restart must read, and the part of the commit about watched streams.

        `decided`: of the commit. `offset` comes next. Without `keep_series` a restart reads only the readings
        again that aren't decided.
        """
        undecided = self._undecided()
        while self._releases and (undecided is None or self._next_release <= undecided):
            self._releases.popleft()
        oldest = self._order.oldest
        # The next reading of a series comes at this time or later.
        next_time = self.watermark if oldest is None else min(self.watermark, oldest)
        self._series.forget_ended(next_time)
        needed = self._series.oldest_needed(next_time)
        self._needed = next_time if needed is None else needed
        windows = [oldest]
        if keep_series:
            windows.append(needed)
        if self._releases:
            number, time, at, before = self._releases[0]
            if keep_series:
                windows.append(before)
        else:
            number = self._number
            time, at = max((self.watermark, offset), (self._start.known_time, self._start.known_offset))
        self._checkpoints.add(offset, self._latest)
        # All readings of a time in a window are needed, of the time of the first undecided reading only those
        # from its offset on.
        first = min([(time, at), *((one, -1) for one in windows if one is not None)])
        floor, done = self._checkpoints.before(*first)
        return min(done, decided), WatchedCommit(decided, floor, time, at, number)

    @property
    def _next_release(self) -> int:
        """The number of the first reading after the first batch of released readings."""
        return self._releases[1].number if len(self._releases) > 1 else self._number

    def _undecided(self) -> int | None:
        """The number of the first reading that is held, or whose record could still be lost."""
        found = list(self._ledger.unsafe.values())
        for one in self._streams.values():
            held = one.served.forget_decided(one.served.held(), self._ledger.counts)
            found += held[:1].tolist()
        return min(found, default=None)

    def progress(self, born: int) -> Progress:
        """The least event time that can still be published, by topic and output partition."""
        oldest = self._order.oldest
        reached = self.watermark if oldest is None else min(self.watermark, oldest)
        found: dict[tuple[str, int], int] = {}
        for one in self._streams.values():
            found |= one.served.progress(one.served.held(), reached, born + self._number)
        return found

    def place(self, born: int) -> int:
        """The position of the next released reading."""
        return born + self._number

    # ---- state

    @property
    def served(self) -> tuple[ServedTopics, ...]:
        """The topics of each watched stream."""
        return tuple(one.served for one in self._streams.values())

    def take_matches(self) -> Counter[str]:
        """The number of matching readings since the last call, by the name of the pattern in the query."""
        matches, self._matches = self._matches, Counter()
        return matches

    @property
    def waiting(self) -> int:
        """The number of readings that wait for the watermark."""
        return len(self._order)

    @property
    def series(self) -> int:
        """The number of series."""
        return len(self._series) if self else 0

    @property
    def bytes(self) -> int:
        """The memory of the series."""
        return self._series.bytes if self else 0


def _plan(served: ServedTopics) -> StreamPlan:
    assert served.stream is not None
    return served.stream


def _with_columns(batch: Batch, rows: Int64s, found: Sequence[AddedColumns]) -> Batch:
    """The given rows with the columns of watches."""
    part = batch.take(rows)
    columns = dict(part.columns)
    for one in found:
        for column, vector in zip(one.watch.columns, one.vectors(), strict=True):
            columns[column.name] = vector.take(rows)
    return replace(part, columns=columns)


def _extends(now: _Columns, before: _Columns) -> bool:
    """True if a stream is the same as before, perhaps with more columns or other domains."""
    types = {column.name: column.type for column in now[0]}
    return now[1:] == before[1:] and all(types.get(column.name) == column.type for column in before[0])

"""The latest readings of each key for window functions, and the event times of the latest readings.

The readings are linked lists in columns. A reading has a *slot*, a row in each column. Slots of readings that
no frame can have any more are used again. Memory therefore depends on the number of readings that are kept,
not on their distribution over keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.watches import Frame, WindowFunction
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.vectors import Mask, Vector, dtype_of
from tamis.kernels import njit
from tamis.omission.columns import as_span
from tamis.similarity.sliding_transform import Int64s

# Before the first reading of a series. It is so long ago that the first reading counts as behind a gap.
START = -(2**63)


@njit(cache=True)
def exchange(keys: Int64s, times: Int64s, last: Int64s) -> Int64s:
    """The time of the reading before each reading in its series; `last` is that by key, and is updated."""
    before = np.empty_like(times)
    for row in range(len(keys)):
        before[row] = last[keys[row]]
        last[keys[row]] = times[row]
    return before


class LatestTimes:
    """The event times of the latest readings of each series.

    A series takes 8 bytes for each of the `most` readings that are kept, and 8 bytes more.
    """

    def __init__(self, most: int) -> None:
        self._times = np.zeros((0, max(most, 1)), np.int64)
        self._seen = np.zeros(0, np.int64)

    def push(self, keys: Int64s, times: Int64s) -> None:
        """Append readings to their series; both arrays have shape (n,). Times of a series don't fall."""
        more = int(keys.max(initial=-1)) + 1 - len(self._seen)
        if more > 0:
            more = max(more, len(self._seen))
            self._times = np.concatenate([self._times, np.zeros((more, self._times.shape[1]), np.int64)])
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])
        _append(keys, times, self._times, self._seen)

    def oldest(self, needed: Int64s) -> int | None:
        """The least event time among the `needed` latest readings of the series, given by key; None if no
        reading is needed. A series must have had as many readings.
        """
        keys = np.flatnonzero(needed)
        if not len(keys):
            return None
        at = (self._seen[keys] - needed[keys]) % self._times.shape[1]
        return int(self._times[keys, at].min())

    def keeping(self, most: int) -> LatestTimes:
        """A copy with the latest readings of each series, and with room for `most` of them."""
        found = LatestTimes(most)
        found._seen = self._seen.copy()
        found._times = np.zeros((len(self._seen), max(most, 1)), np.int64)
        have, room = self._times.shape[1], found._times.shape[1]
        numbers = self._seen[:, None] - np.arange(1, min(have, room) + 1)
        latest = np.take_along_axis(self._times, numbers % have, axis=1)
        np.put_along_axis(found._times, numbers % room, latest, axis=1)
        return found


@njit(cache=True)
def _append(keys: Int64s, times: Int64s, kept: Int64s, seen: Int64s) -> None:
    most = kept.shape[1]
    for row in range(len(keys)):
        key = keys[row]
        kept[key, seen[key] % most] = times[row]
        seen[key] += 1


NONE = -1
# Bytes of a slot besides its value: event time, the slots before and after it, and the mark of NULL.
_SLOT = 25
_VALUE = 8
# Bytes of a key: its first and last slot, and their number.
_KEY = 24


class KeyHistory:
    """The readings of one value that frames of later readings can have."""

    def __init__(self, type_: Type) -> None:
        # A frame has `rows` readings before its own, at most, which are at most `age` older. Frames without a
        # limit of rows have readings that are at most `span` older; -1 without such frames.
        self.rows, self.age, self.span = 0, 0, NONE
        self.times = np.zeros(0, np.int64)
        self.values: NDArray[Any] = np.zeros(0, dtype_of(type_))
        self.null: Mask = np.zeros(0, np.bool_)
        self._before, self._after = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._oldest, self._newest = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.kept = np.zeros(0, np.int64)  # the number of readings by key
        self._free = np.zeros(0, np.int64)

    def keep_nothing(self) -> None:
        """Keep no reading for frames that are added from now on."""
        self.rows, self.age, self.span = 0, 0, NONE

    def keep(self, frame: Frame) -> None:
        """Keep what this frame needs, besides what is kept already."""
        if frame.first is None:
            self.span = max(self.span, frame.span)
        elif frame.first > 0:
            self.rows = max(self.rows, frame.first)
            self.age = max(self.age, frame.span)

    @property
    def bytes(self) -> int:
        """The memory of all readings and keys."""
        return len(self.times) * (_SLOT + self.values.itemsize) + len(self.kept) * _KEY

    @property
    def keys(self) -> int:
        """Every key is below this number."""
        return len(self.kept)

    def add(self, keys: Int64s, times: Int64s, vector: Vector) -> Int64s:
        """Append readings to their keys, which must come in the order of their event times; returns their
        slots. Nothing is forgotten until `forget` is called, so that each frame of these readings is whole.
        """
        self._make_room(int(keys.max(initial=-1)) + 1, len(keys))
        slots, self._free = self._free[: len(keys)], self._free[len(keys) :]
        self.times[slots] = times
        self.values[slots] = vector.data
        self.null[slots] = False if vector.null is None else vector.null
        _link(keys, slots, self._oldest, self._newest, self.kept, self._before, self._after)
        return slots

    def counts(self, slots: Int64s, frame: Frame) -> Int64s:
        """The number of readings in the frame of each of the readings at `slots`."""
        first = len(self.times) if frame.first is None else frame.first
        return _count(slots, self.times, self._before, first, frame.last, as_span(frame.span))

    def readings(self, slots: Int64s, counts: Int64s, frame: Frame) -> Int64s:
        """The slots of all readings in the frames of the readings at `slots`, frame by frame, the newest
        first. `counts` are their numbers.
        """
        found = np.empty(int(counts.sum()), np.int64)
        _collect(slots, counts, self._before, frame.last, found)
        return found

    def at(self, slots: Int64s) -> Vector:
        """The values at these slots."""
        null = self.null[slots]
        return Vector(self.values[slots], null if null.any() else None)

    def forget(self, keys: Int64s, watermark: int) -> None:
        """Forget the readings of these keys that no frame of a reading at `watermark` or later can have; keys
        may be repeated.
        """
        freed = np.empty(int(self.kept[np.unique(keys)].sum()), np.int64)
        count = _expire(
            keys,
            watermark,
            (self.rows, as_span(self.age), as_span(max(self.span, 0)), self.span >= 0),
            (self._oldest, self._newest, self.kept),
            (self.times, self._before, self._after),
            freed,
        )
        if self.values.dtype == np.object_:
            self.values[freed[:count]] = None
        self._free = np.concatenate([freed[:count], self._free])

    def clear(self, keys: Int64s) -> None:
        """Forget all readings of these keys."""
        kept = self.rows, self.age, self.span
        self.keep_nothing()
        self.forget(keys[keys < self.keys], 0)
        self.rows, self.age, self.span = kept

    def oldest_times(self) -> Int64s:
        """By key, the event time of its oldest reading; 2^63 - 1 for a key without readings."""
        has = self.kept > 0
        found = np.full(self.keys, np.iinfo(np.int64).max)
        found[has] = self.times[self._oldest[has]]
        return found

    def _make_room(self, keys: int, readings: int) -> None:
        more = keys - self.keys
        if more > 0:
            more = max(more, min(self.keys, 4096))
            self._oldest = np.concatenate([self._oldest, np.full(more, NONE)])
            self._newest = np.concatenate([self._newest, np.full(more, NONE)])
            self.kept = np.concatenate([self.kept, np.zeros(more, np.int64)])
        have = len(self.times)
        more = readings - len(self._free)
        if more > 0:
            more = max(more, have // 4)
            self._free = np.concatenate([self._free, np.arange(have, have + more)])
            self.times, self.values, self.null, self._before, self._after = (
                np.concatenate([column, np.zeros(more, column.dtype)])
                for column in (self.times, self.values, self.null, self._before, self._after)
            )


def most_readings(functions: Iterable[WindowFunction], within: Callable[[int], float | None]) -> float | None:
    """The most readings of one key and value that are kept for some window functions of this value, besides
    those that come later than the watermark. `within` is the most readings of one key in a span of
    microseconds; None if that isn't known, and then the result is None for frames that only time limits.
    """
    frames = [function.frame for function in functions]
    rows = max((frame.first for frame in frames if frame.first is not None), default=0)
    spans = [frame.span for frame in frames if frame.first is None]
    timed = within(max(spans)) if spans else 0.0
    return None if timed is None else max(float(rows), timed)


def bytes_per_key(functions: Iterable[WindowFunction], within: Callable[[int], float | None]) -> float | None:
    """The memory of one key for some window functions, in bytes; `within` as in `most_readings`."""
    by_value: dict[Expr, list[WindowFunction]] = {}
    for function in functions:
        by_value.setdefault(function.value, []).append(function)
    counts = [most_readings(of_value, within) for of_value in by_value.values()]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return sum(_KEY + count * (_SLOT + _VALUE) for count in known)


@njit(cache=True)
def _link(  # noqa: PLR0917 - compiled, it takes no names
    keys: Int64s,
    slots: Int64s,
    oldest: Int64s,
    newest: Int64s,
    kept: Int64s,
    before: Int64s,
    after: Int64s,
) -> None:
    """Append each slot to the list of its key."""
    for row in range(len(keys)):
        key, slot = keys[row], slots[row]
        last = newest[key]
        before[slot], after[slot] = last, -1
        if last < 0:
            oldest[key] = slot
        else:
            after[last] = slot
        newest[key] = slot
        kept[key] += 1


@njit(cache=True)
def _count(  # noqa: PLR0917 - compiled, it takes no names
    slots: Int64s, times: Int64s, before: Int64s, first: int, last: int, span: np.uint64
) -> Int64s:
    """The number of readings in each frame."""
    counts = np.empty(len(slots), np.int64)
    for row in range(len(slots)):
        slot, now, at = slots[row], times[slots[row]], 0
        # Differences of times may take 64 bits without a sign.
        while slot >= 0 and at <= first and np.uint64(now - times[slot]) <= span:
            slot = before[slot]
            at += 1
        counts[row] = max(at - last, 0)
    return counts


@njit(cache=True)
def _collect(slots: Int64s, counts: Int64s, before: Int64s, last: int, found: Int64s) -> None:
    """Set the slots of the readings in all frames, whose numbers are known."""
    place = 0
    for row in range(len(slots)):
        if counts[row] == 0:
            continue
        slot = slots[row]
        for _ in range(last):
            slot = before[slot]
        for _ in range(counts[row]):
            found[place] = slot
            place += 1
            slot = before[slot]


@njit(cache=True)
def _expire(  # noqa: PLR0917 - compiled, it takes no names
    keys: Int64s,
    watermark: int,
    limits: tuple[int, np.uint64, np.uint64, bool],
    lists: tuple[Int64s, Int64s, Int64s],
    columns: tuple[Int64s, Int64s, Int64s],
    freed: Int64s,
) -> int:
    """Remove the oldest readings of the keys that aren't needed; returns the number of freed slots.

    `limits` are `rows`, `age` and `span` of the history, and if it has a span; `lists` its oldest and newest
    slot and their number by key, and `columns` time, slot before and slot after by slot.
    """
    rows, age, span, timed = limits
    oldest, newest, kept = lists
    times, before, after = columns
    count = 0
    for row in range(len(keys)):
        key = keys[row]
        if kept[key] == 0:
            continue
        # The next reading comes at the watermark or later, and not before the newest reading.
        now = max(watermark, times[newest[key]])
        while kept[key] > 0:
            slot = oldest[key]
            old = np.uint64(now - times[slot])
            if (timed and old <= span) or (kept[key] <= rows and old <= age):
                break
            freed[count] = slot
            count += 1
            kept[key] -= 1
            oldest[key] = after[slot]
            if kept[key] == 0:
                newest[key] = -1
            else:
                before[after[slot]] = -1
    return count

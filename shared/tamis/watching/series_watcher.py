"""All watches of one base stream over the readings of its keys.

Patterns that are compared with the same value and have the same limit of gaps share an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.watches import AnyWatch, Watch, WindowFunction, pattern_watches, window_functions
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Expr
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Columns, Vector
from tamis.omission.columns import as_span
from tamis.similarity import KeyedPatterns, Matches, Pattern
from tamis.similarity.sliding_transform import Floats, Int64s
from tamis.watching.key_history import START, exchange
from tamis.watching.watched_columns import AddedColumns, WatchedColumns, WindowValues
from tamis.watching.window_group import WindowGroup


class PatternGroup:
    """Matches of many series with the patterns of a group.

    `members` has for each pattern of the group the number of its watch in `watches`, and its place in
    `Watch.patterns`. `max_gap` is in microseconds.
    """

    def __init__(
        self, watches: Sequence[Watch], value: Expr, max_gap: int, members: Sequence[tuple[int, int]]
    ) -> None:
        self.value = value
        self.max_gap = as_span(max_gap)
        self.watch, self.place = np.array(members, np.int64).T
        self._patterns = KeyedPatterns(
            _pattern(number, watches[watch], place) for number, (watch, place) in enumerate(members)
        )
        self.longest = self._patterns.longest

    def continue_from(self, before: PatternGroup) -> None:
        """Continue the series of a group of other patterns."""
        self._patterns.load(before._patterns.dump())

    @property
    def bytes_per_key(self) -> int:
        """The memory of one series."""
        return self._patterns.bytes_per_key

    def push(self, keys: Int64s, values: Floats, spans: NDArray[np.uint64]) -> Matches:
        """Append readings to their series; `spans` are the times since the reading before of the same key.
        Patterns are numbered as `members`.
        """
        apart = spans > self.max_gap
        if not apart.any():
            return self._patterns.push(keys, values)
        rows = np.repeat(np.arange(len(keys)), 1 + apart)
        readings = values[rows]
        # A gap before each reading that is too far from the one before it.
        readings[np.flatnonzero(apart) + np.arange(np.count_nonzero(apart))] = np.nan
        matches = self._patterns.push(keys[rows], readings)
        return matches._replace(row=rows[matches.row])

    def needed(self, keys: int) -> Int64s:
        """By key, the number of latest readings that windows of later readings can have, if these come before
        `max_gap` has passed.
        """
        found, known = np.zeros(keys, np.int64), self._patterns.needed()[:keys]
        found[: len(known)] = known
        return found

    def forget(self, keys: Int64s) -> None:
        """Start the series of these keys anew."""
        self._patterns.forget(keys)


def _pattern(number: int, watch: Watch, place: int) -> Pattern:
    """A pattern under a name of its own: several watches may ask for one pattern with different limits."""
    named = watch.patterns[place]
    return Pattern(
        f"{named.name} ({number})",
        named.values,
        epsilon=watch.epsilon,
        scale=watch.scale,
        shift=watch.shift,
    )


class SeriesWatcher:
    """The columns of each watch for each reading, in the series of the reading's key: the nearest patterns,
    and the values of window functions.

    Watches that compare the same value share an index of all their patterns with the same `max_gap`. Window
    functions of the same value share its history. Keys are whole numbers from 0, which the caller assigns
    densely, since memory grows with the greatest key.
    """

    def __init__(
        self, watches: Sequence[AnyWatch], failed: Callable[[FunctionError], None] | None = None
    ) -> None:
        """Raises `InputError` for a pattern that `tamis.similarity.Pattern` refuses.

        `failed` is called if a Python function fails in the value of a watch. Its readings are gaps then, and
        NULL for window functions. Without `failed`, `push` raises the error.
        """
        self._failed = failed
        self._asked = tuple(watches)
        known = list(dict.fromkeys(pattern_watches(watches)))
        self._watches = known
        self._epsilons = np.array([watch.epsilon for watch in known], np.float64)
        members: dict[tuple[Expr, int], list[tuple[int, int]]] = {}
        for number, watch in enumerate(known):
            for place, pattern in enumerate(watch.patterns):
                members.setdefault((watch.value, pattern.max_gap), []).append((number, place))
        self._groups = [PatternGroup(known, *group, of) for group, of in members.items()]
        self.most_needed = max((group.longest for group in self._groups), default=1) - 1
        by_value: dict[Expr, dict[WindowFunction, None]] = {}
        for function in window_functions(watches):
            by_value.setdefault(function.value, {})[function] = None
        self.windows = [WindowGroup(list(functions)) for functions in by_value.values()]
        self._last = np.empty(0, np.int64)

    def continue_from(self, before: SeriesWatcher) -> None:
        """Continue the series of a watcher of other watches.

        Where a pattern is longer than those of `before` with the same value and `max_gap`, its first windows
        need new readings. Where a frame is longer, it lacks older readings at first. A value that `before`
        did not watch begins without readings.
        """
        known = {(group.value, int(group.max_gap)): group for group in before._groups}
        for group in self._groups:
            if (group.value, int(group.max_gap)) in known:
                group.continue_from(known[group.value, int(group.max_gap)])
        histories = {group.value: group for group in before.windows}
        for window in self.windows:
            if window.value in histories:
                window.continue_from(histories[window.value])
        self._last = before._last.copy()

    @property
    def bytes_per_key(self) -> int:
        """The memory of one series, without the readings of window functions."""
        return 8 + sum(group.bytes_per_key for group in self._groups)

    @property
    def history_bytes(self) -> int:
        """The memory of the readings of window functions, of all keys."""
        return sum(group.history.bytes for group in self.windows)

    def push(self, keys: Int64s, times: Int64s, columns: Columns, count: int) -> tuple[AddedColumns, ...]:
        """Append `count` readings to their series; returns the columns of each watch, in the order in which
        the watches were given.

        `keys` and `times` have shape (count,); times are event times in microseconds. Readings of one key
        must come in the order of their event times, here and from call to call. `columns` has the columns of
        the base stream by ("", name).
        """
        self._make_room(int(keys.max(initial=-1)) + 1)
        # A reading that is older than the one before it would be far ahead of that: also a gap.
        spans = (times - exchange(keys, times, self._last)).view(np.uint64)
        values: dict[Expr, Floats] = {}
        found = []
        for group in self._groups:
            if group.value not in values:
                values[group.value] = self._readings(group.value, columns, count)
            matches = group.push(keys, values[group.value], spans)
            watch, place = group.watch[matches.pattern], group.place[matches.pattern]
            found.append((watch, matches.row, place, matches.distance, matches.scale, matches.shift))
        added: dict[AnyWatch, AddedColumns] = {one.watch: one for one in self._nearest(found, count)}
        for window in self.windows:
            given = self._vector(window.value, columns, count)
            defaults = [
                None if one.default is None else self._vector(one.default, columns, count)
                for one in window.functions
            ]
            of_group = window.push(keys, times, given, defaults)
            added |= {
                one: WindowValues(one, values) for one, values in zip(window.functions, of_group, strict=True)
            }
        return tuple(added[watch] for watch in self._asked)

    def needed(self, watermark: int) -> Int64s:
        """By key, the number of latest readings that windows of readings at `watermark` or later can have.

        If it is 0 for a key, the key may be forgotten: this changes no result. It is at most `most_needed`.
        """
        last = self._last
        behind = (np.maximum(last, watermark) - last).view(np.uint64)
        found = np.zeros(len(last), np.int64)
        for group in self._groups:
            within = np.where(behind <= group.max_gap, group.needed(len(last)), 0)
            np.maximum(found, within, out=found)
        return found

    def forget_history(self, watermark: int) -> Int64s:
        """Forget the readings that no frame of a reading at `watermark` or later can have. Returns by key the
        event time of the oldest reading that is left, 2^63 - 1 for a key without one.
        """
        found = np.full(len(self._last), np.iinfo(np.int64).max)
        for window in self.windows:
            known = window.history.keys
            window.history.forget(np.arange(known), watermark)
            found[:known] = np.minimum(found[:known], window.history.oldest_times()[: len(found)])
        return found

    def forget(self, keys: Int64s) -> None:
        """Start the series of these keys anew, as if they had no readings so far."""
        for group in self._groups:
            group.forget(keys)
        for window in self.windows:
            window.history.clear(keys)

    def _make_room(self, keys: int) -> None:
        more = keys - len(self._last)
        if more > 0:
            self._last = np.concatenate([self._last, np.full(more, START)])

    def _readings(self, value: Expr, columns: Columns, count: int) -> Floats:
        """The values as doubles, NaN for NULL."""
        vector = self._vector(value, columns, count)
        readings = vector.data.astype(np.float64)
        if vector.null is not None:
            readings[vector.null] = np.nan
        return readings

    def _vector(self, value: Expr, columns: Columns, count: int) -> Vector:
        """The values; NULL if a Python function fails."""
        try:
            return evaluate(value, columns, count)
        except FunctionError as error:
            if self._failed is None:
                raise
            self._failed(error)
            return Vector.nulls(value.type, count)

    def _nearest(
        self, found: Sequence[tuple[Int64s, Int64s, Int64s, Floats, Floats, Floats]], count: int
    ) -> Iterator[WatchedColumns]:
        """For each watch the nearest of its patterns that match at a reading.

        A match has the number of the watch, the row, the place of the pattern, distance, scale and shift.
        """
        empty = [np.empty(0, np.int64)] * 3 + [np.empty(0)] * 3
        watch, row, place, distance, scale, shift = map(np.concatenate, zip(empty, *found, strict=True))
        # A distance may exceed epsilon by its tolerance, but the column is declared to be at most epsilon.
        distance = np.minimum(distance, self._epsilons[watch])
        order = np.lexsort((place, distance, row, watch))
        watch, row = watch[order], row[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(watch) != 0) | (np.diff(row) != 0)
        order, watch, row = order[first], watch[first], row[first]
        ends = np.searchsorted(watch, np.arange(len(self._watches) + 1))
        for number, one in enumerate(self._watches):
            part = slice(ends[number], ends[number + 1])
            of = order[part]
            yield WatchedColumns(one, count, row[part], place[of], distance[of], scale[of], shift[of])

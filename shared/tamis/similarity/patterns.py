"""Watch for patterns in many series at once, in columns, or in one series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from tamis.errors import InputError
from tamis.similarity.pattern import Pattern
from tamis.similarity.pattern_index import WAVES, pattern_index
from tamis.similarity.sliding_transform import STALE, STEPS, Floats, Int64s, columns
from tamis.similarity.watch_kernel import FILLED, MARKS, RUN, SEEN, column, restore, watch


class Matches(NamedTuple):
    """Matches as columns of one length, in the order of the readings, then of the patterns.

    `row`: which reading of the batch ends the window; `end`: its number in its series, from 0; `pattern`:
    which pattern, by its place; `distance`, `scale` and `shift` as in `Match`.
    """

    row: Int64s
    end: Int64s
    pattern: Int64s
    distance: Floats
    scale: Floats
    shift: Floats


class KeyedPatterns:
    """Matches of the latest readings of many series with many patterns.

    Series are told apart by keys: whole numbers from 0, which the caller assigns densely, since memory grows
    with the greatest key. A series takes the latest readings, 1.25 times as many as the longest pattern has
    (at least 16 more), and for each length of patterns 104 bytes; see `bytes_per_key`.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        """Raises `InputError` if two patterns have one name."""
        self.patterns = tuple(patterns)
        twice = [name for name, count in Counter(p.name for p in self.patterns).items() if count > 1]
        if twice:
            raise InputError("two patterns have this name", where=f"pattern {twice[0]}")
        self._index = pattern_index(self.patterns)
        self.longest = max(map(len, self.patterns), default=1)
        self._lengths = len(self._index.groups)
        self._tails = np.empty((0, self.longest + max(16, self.longest // 4)))
        self._marks = np.zeros((0, MARKS), np.int64)
        self._sums = np.empty((0, self._lengths, columns(WAVES)))

    @property
    def bytes_per_key(self) -> int:
        """The memory of one series."""
        return sum(8 * prod(array.shape[1:]) for array in (self._tails, self._marks, self._sums))

    def push(self, keys: npt.ArrayLike, readings: npt.ArrayLike) -> Matches:
        """Append a reading to the series of each key, in the order of the rows; returns the matches.

        NaN, None, infinite readings, and those of magnitude above 1e150 are gaps. No window with a gap
        matches, but a gap counts as a reading. Raises `InputError` for other columns than these.
        """
        try:
            key, value = column(keys, np.int64), column(readings, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"keys and readings must be columns of numbers: {error}") from None
        if key.ndim != 1 or key.shape != value.shape:
            raise InputError(f"keys and readings have shapes {key.shape} and {value.shape}")
        if len(key) and key.min() < 0:
            raise InputError(f"key {key.min()} is negative")
        self._make_room(int(key.max(initial=-1)) + 1)
        if not self.patterns:
            np.add.at(self._marks[:, SEEN], key, 1)
            return _matches(np.empty((0, 3), np.int64), np.empty((0, 3)))
        return _matches(*watch(key, value, self._index, self._tails, self._marks, self._sums))

    def needed(self) -> Int64s:
        """By key, the number of latest readings that windows of later readings can have. It is less than the
        length of the longest pattern, and 0 for a series that ends with a gap.
        """
        return np.minimum(self._marks[:, RUN], self.longest - 1)

    def dump(self) -> bytes:
        """The latest readings of each series, as bytes for `load`."""
        kept = min(self.longest - 1, int(self._marks[:, FILLED].max(initial=0)))
        filled = self._marks[:, FILLED]
        at = filled[:, None] - np.arange(kept, 0, -1)
        latest = np.where(at >= 0, np.take_along_axis(self._tails, np.maximum(at, 0), axis=1), np.nan)
        header = {"version": 1, "series": len(filled), "readings": kept}
        return b"\n".join(
            [
                orjson.dumps(header),
                self._marks[:, SEEN].astype("<i8").tobytes() + latest.astype("<f8").tobytes(),
            ]
        )

    def load(self, state: bytes) -> None:
        """Continue where the object that dumped `state` was; it may have had other patterns.

        Where a pattern of this object is longer than all patterns were that were watched then, its windows
        need as many new readings as it is longer. Raises `InputError` for bytes that `dump` did not make.
        """
        head, _, body = state.partition(b"\n")
        try:
            header = orjson.loads(head)
            version, series, readings = (header[name] for name in ("version", "series", "readings"))
            if version != 1 or len(body) != 8 * series * (1 + readings):
                raise ValueError(f"version {version}, {len(body)} bytes")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"these bytes are no state of KeyedPatterns: {error}") from None
        seen = np.frombuffer(body, "<i8", series)
        latest = np.frombuffer(body, "<f8", series * readings, 8 * series).reshape(series, readings)
        latest = np.array(latest[:, max(readings - self.longest + 1, 0) :], dtype=np.float64, order="C")
        self._tails, self._marks, self._sums = self._tails[:0], self._marks[:0], self._sums[:0]
        self._make_room(series)
        restore(latest, self._tails, self._marks)
        self._marks[:series, SEEN] = seen

    def forget(self, keys: npt.ArrayLike) -> None:
        """Start the series of these keys anew, as if nothing had been pushed."""
        rows = np.asarray(keys, dtype=np.int64)
        rows = rows[rows < len(self._marks)]
        self._marks[rows] = 0
        self._sums[rows, :, STEPS] = STALE

    def _make_room(self, keys: int) -> None:
        """Have rows for so many keys."""
        have = len(self._marks)
        if keys <= have:
            return
        rows = max(keys, min(2 * have, keys + 4096)) - have
        self._tails = np.concatenate([self._tails, np.zeros((rows, self._tails.shape[1]))])
        self._marks = np.concatenate([self._marks, np.zeros((rows, MARKS), np.int64)])
        fresh = np.zeros((rows, *self._sums.shape[1:]))
        fresh[:, :, STEPS] = STALE
        self._sums = np.concatenate([self._sums, fresh])


def _matches(found: Int64s, fits: Floats) -> Matches:
    """In the order of the rows, and of the patterns where a row has several matches."""
    order = np.lexsort((found[:, 1], found[:, 0]))
    row, pattern, end = found[order].T
    return Matches(row, end, pattern, *fits[order].T)


class Match(NamedTuple):
    """A window that matches a pattern.

    `pattern` is the pattern's name, `end` the index of the window's last reading, counted from 0 at the first
    reading ever pushed. `distance` is the least sqrt(mean((Q - (a S + b))²)) over the allowed scales a and
    shifts b; it is attained at `scale` and `shift`.
    """

    pattern: str
    end: int
    distance: float
    scale: float
    shift: float


class Patterns:
    """Matches of the latest readings of one series with many patterns; see `Pattern`.

    >>> ramp = Pattern("ramp", [0, 1, 2], epsilon=0.1)
    >>> Patterns([ramp]).push([5.0, 5.0, 7.0, 9.0])
    [Match(pattern='ramp', end=3, distance=0.0, scale=0.5, shift=-2.5)]
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        """The patterns may differ in length. Raises `InputError` if two have one name."""
        self._watched = KeyedPatterns(patterns)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns, as given."""
        return self._watched.patterns

    def push(self, readings: npt.ArrayLike) -> list[Match]:
        """Append the next readings of the series; returns the matches, by their end, then by pattern.

        A reading that is NaN, None, infinite or of magnitude above 1e150 is a gap: it counts as a reading,
        and no window with it matches. Raises `InputError` for anything else than a column of numbers.
        """
        try:
            values = column(readings, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"readings must be a column of numbers: {error}") from None
        if values.ndim > 1:
            raise InputError(f"readings have the shape {values.shape}, not that of a column")
        found = self._watched.push(np.zeros(len(values), np.int64), values)
        names = [self.patterns[number].name for number in found.pattern.tolist()]
        columns = (found.end, found.distance, found.scale, found.shift)
        return list(map(Match, names, *(column.tolist() for column in columns)))

    def dump(self) -> bytes:
        """The latest readings, as bytes for `load`."""
        return self._watched.dump()

    def load(self, state: bytes) -> None:
        """Continue where the object that dumped `state` was; see `KeyedPatterns.load`."""
        self._watched.load(state)

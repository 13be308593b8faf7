"""Kernel that finds the patterns matched by each new reading of many series, by a search of their index.

A series has a row in each array of the state:

- `tails`: the latest readings, as many as the longest pattern has, and some room. Once the room is full, the
  readings are moved to the front.
- `marks`: the number of readings in the tail, of readings since the last gap (NaN, infinite or too large), of
  equal readings at the end, and of all readings.
- `sums`: the state of `sliding_transform` for each length.

Memory and time per reading therefore don't depend on the number of readings so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.similarity.best_fit import DEVIATION, LEAST_VARIANCE, LIMIT, best_fit, product
from tamis.similarity.normal_form import GREATEST
from tamis.similarity.pattern_index import (
    BINS,
    BIT,
    COORDINATES,
    COUNT,
    DEVIATIONS,
    FIRST,
    LENGTH,
    LOOSE,
    MEANS,
    REST,
    ROWS,
    SUMMARY,
    TURN,
    WAVE,
    WORDS,
    Bits,
    PatternIndex,
)
from tamis.similarity.sliding_transform import (
    ANCHOR,
    STALE,
    STEPS,
    SUM,
    Floats,
    Int64s,
    advance,
    coefficients,
)


def column(values: npt.ArrayLike, kind: type[np.generic]) -> npt.NDArray[Any]:
    """The values as an array that kernels take: of this type, contiguous, and writable, since numba compiles
    a kernel once more for an array that isn't. None becomes NaN.

    Raises `TypeError`, `ValueError` or `OverflowError` for values that aren't numbers.
    """
    return np.require(np.ascontiguousarray(values, dtype=kind), requirements=("C", "A", "W"))


# De Bruijn's sequence: the position of a single bit by the upper six bits of its product.
_SEQUENCE = 0x03F79D71B4CB0A89
_POSITIONS = np.empty(64, np.int64)
for _bit in range(64):
    _POSITIONS[(((1 << _bit) * _SEQUENCE) & (2**64 - 1)) >> 58] = _bit
_MULTIPLIER, _TOP = np.uint64(_SEQUENCE), np.uint64(58)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, error_model="numpy")
def locate(
    sums: Floats, key: int, groups: Int64s, group: int, spread: float, turns: Floats, point: Floats
) -> None:
    """Write the coordinates of a window with the variance `spread`; see `pattern_index`."""
    n, waves = groups[group, LENGTH], groups[group, WAVE]
    coefficients(sums, key, group, turns, groups[group, TURN], waves, point)
    weight = np.sqrt(2.0 / spread) / n
    length = 0.0
    for i in range(2 * waves):
        if i + 2 == n and i % 2 == 0:  # the coefficient n / 2 has no conjugate besides itself
            weight = np.sqrt(1.0 / spread) / n
        point[i] *= weight
        length += point[i] * point[i]
    for i in range(2 * waves, REST):
        point[i] = 0.0
    point[REST] = np.sqrt(max(1.0 - length, 0.0))
    point[DEVIATIONS] = 0.5 * np.log2(spread)
    point[MEANS] = sums[key, group, ANCHOR] + sums[key, group, SUM] / n


@njit(cache=True, error_model="numpy")
def boxes_around(
    groups: Int64s,
    group: int,
    point: Floats,
    lows: Floats,
    steps: Floats,
    bits: Bits,
    summaries: Bits,
    rows: Int64s,
    found: Int64s,
) -> int:
    """Write to `found` the patterns of a group whose boxes may hold the point; returns their number.

    `rows` is room for an integer per coordinate.
    """
    count = 0
    for d in range(COORDINATES):
        if steps[group, d] > 0.0:
            place = (point[d] - lows[group, d]) * steps[group, d]
            rows[count] = d * ROWS + (int(min(place, float(BINS))) + 1 if place >= 0.0 else 0)
            count += 1
    words, pattern = groups[group, WORDS], groups[group, FIRST]
    above = (words + 63) // 64
    total = 0
    for s in range(above):
        some = _conjunction(summaries, groups[group, SUMMARY] + s, above, rows, count)
        while some != _NONE:
            lowest = some & (~some + _ONE)
            some ^= lowest
            w = 64 * s + _position(lowest)
            open_bits = _conjunction(bits, groups[group, BIT] + w, words, rows, count)
            while open_bits != _NONE:
                lowest = open_bits & (~open_bits + _ONE)
                open_bits ^= lowest
                found[total] = pattern + 64 * w + _position(lowest)
                total += 1
    return total


@njit(cache=True, error_model="numpy")
def _conjunction(bits: Bits, first: int, words: int, rows: Int64s, count: int) -> np.uint64:
    """One word of the conjunction of rows of so many words."""
    found = ~_NONE
    for d in range(count):
        found &= bits[first + rows[d] * words]
        if found == _NONE:
            break
    return found


@njit(cache=True, error_model="numpy")
def _position(lowest: np.uint64) -> int:
    """The position of a single bit."""
    position: int = _POSITIONS[(lowest * _MULTIPLIER) >> _TOP]
    return position


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def near(pattern: int, point: Floats, points: Floats, reaches: Floats) -> bool:
    """Tell if the fingerprints are as close as those of a match."""
    apart = 0.0
    for d in range(REST + 1):
        difference = point[d] - points[pattern, d]
        apart += difference * difference
    found: bool = apart <= reaches[pattern]
    return found


@njit(cache=True, error_model="numpy")
def correlated(
    pattern: int,
    values: Floats,
    window: Floats,
    base: float,
    spread: float,
    products: Floats,
    limits: Floats,
) -> bool:
    """Tell if pattern and window, with variance `spread`, have the normalized product of a match; `base` is
    close to the mean of the window.
    """
    least = products[pattern] * limits[pattern, DEVIATION] * np.sqrt(spread) * len(window)
    found: bool = product(values, window, base) >= least
    return found


FILLED, RUN, EQUAL, SEEN = range(4)
MARKS = 4


@njit(cache=True, error_model="numpy")
def append(tails: Floats, marks: Int64s, key: int, reading: float, longest: int) -> int:
    """Append a reading to a series; returns where its tail ends now, or 0 for a gap."""
    filled = marks[key, FILLED]
    if filled == tails.shape[1]:
        # With the new reading one more than a window, as the reading that leaves it is needed, too.
        for i in range(longest):
            tails[key, i] = tails[key, filled - longest + i]
        filled = longest
    marks[key, SEEN] += 1
    marks[key, FILLED] = filled + 1
    if not abs(reading) <= GREATEST:
        tails[key, filled] = np.nan
        marks[key, RUN] = 0
        return 0
    same = marks[key, RUN] > 0 and tails[key, filled - 1] == reading
    tails[key, filled] = reading
    marks[key, RUN] += 1
    marks[key, EQUAL] = marks[key, EQUAL] + 1 if same else 1
    end: int = filled + 1
    return end


@njit(cache=True, error_model="numpy")
def watch(
    keys: Int64s, readings: Floats, index: PatternIndex, tails: Floats, marks: Int64s, sums: Floats
) -> tuple[Int64s, Floats]:
    """Append each reading to the series of its key; returns the matches.

    A match has a row, the number of a pattern and of the window's
    last reading in its series, and in the second array distance, scale and shift. Rows ascend.
    """
    groups, tolerances, lows, steps, bits, summaries, turns = index[:7]
    numbers, points, reaches, products, limits, places, values = index[7:]
    longest = groups[-1, LENGTH]
    point, rows = np.zeros(COORDINATES), np.zeros(COORDINATES, np.int64)
    found, centred = np.empty(np.max(groups[:, COUNT]), np.int64), np.empty(longest)
    matches, fits, total = np.empty((64, 3), np.int64), np.empty((64, 3)), 0
    for row in range(len(keys)):
        key = keys[row]
        end = append(tails, marks, key, readings[row], longest)
        for g in range(len(groups)):
            n = groups[g, LENGTH]
            if marks[key, RUN] < n:
                sums[key, g, STEPS] = STALE
                continue
            constant, spread = marks[key, EQUAL] >= n, 0.0
            if constant:
                sums[key, g, STEPS] = STALE
            else:
                turn, waves = groups[g, TURN], groups[g, WAVE]
                spread = advance(sums, key, g, tails, end, n, tolerances[g], turns, turn, waves)
                constant = spread < LEAST_VARIANCE
            if constant:
                count = groups[g, LOOSE]
                for i in range(count):
                    found[i] = groups[g, FIRST] + i
            else:
                locate(sums, key, groups, g, spread, turns, point)
                count = boxes_around(groups, g, point, lows, steps, bits, summaries, rows, found)
            for i in range(count):
                at = found[i]
                if not constant and not near(at, point, points, reaches):
                    continue
                window, pattern = tails[key, end - n : end], values[places[at] : places[at] + n]
                if not constant and not correlated(
                    at, pattern, window, sums[key, g, ANCHOR], spread, products, limits
                ):
                    continue
                least, a, b = best_fit(pattern, limits[at], window, centred)
                if a <= 0.0 or not least <= limits[at, LIMIT]:
                    continue
                if total == len(matches):
                    matches, fits = _twice(matches), _twice(fits)
                matches[total, 0], matches[total, 1] = row, numbers[at]
                matches[total, 2] = marks[key, SEEN] - 1
                fits[total, 0], fits[total, 1], fits[total, 2] = least, a, b
                total += 1
    return matches[:total].copy(), fits[:total].copy()


@njit(cache=True, error_model="numpy")
def _twice(rows: Any) -> Any:
    """The rows, and room for as many."""
    more = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@njit(cache=True, error_model="numpy")
def restore(latest: Floats, tails: Floats, marks: Int64s) -> None:
    """Append the latest readings of each series, of shape (series, readings), to empty series."""
    for key in range(len(latest)):
        for reading in latest[key]:
            append(tails, marks, key, reading, 0)

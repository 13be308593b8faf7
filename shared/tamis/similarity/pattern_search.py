"""Kernels that search the index of patterns for those that a window may match."""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.similarity.best_fit import DEVIATION, product
from tamis.similarity.pattern_index import (
    BINS,
    BIT,
    COORDINATES,
    DEVIATIONS,
    FIRST,
    LENGTH,
    MEANS,
    REST,
    ROWS,
    SUMMARY,
    TURN,
    WAVE,
    WORDS,
    Bits,
)
from tamis.similarity.sliding_transform import ANCHOR, SUM, Floats, Int64s, coefficients

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

"""Kernel that finds the patterns matched by each new reading of many series.

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

from tamis.kernels import njit
from tamis.similarity.best_fit import LEAST_VARIANCE, LIMIT, best_fit
from tamis.similarity.normal_form import GREATEST
from tamis.similarity.pattern_index import COORDINATES, COUNT, FIRST, LENGTH, LOOSE, TURN, WAVE, Bits
from tamis.similarity.pattern_search import boxes_around, correlated, locate, near
from tamis.similarity.sliding_transform import ANCHOR, STALE, STEPS, Floats, Int64s, advance

FILLED, RUN, EQUAL, SEEN = range(4)
MARKS = 4

IndexColumns = tuple[
    Int64s,
    Floats,
    Floats,
    Floats,
    Bits,
    Bits,
    Floats,
    Int64s,
    Floats,
    Floats,
    Floats,
    Floats,
    Int64s,
    Floats,
]


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
    keys: Int64s, readings: Floats, index: IndexColumns, tails: Floats, marks: Int64s, sums: Floats
) -> tuple[Int64s, Floats]:
    """Append each reading to the series of its key; returns the matches.

    `index` has the columns of `PatternIndex`. A match has a row, the number of a pattern and of the window's
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

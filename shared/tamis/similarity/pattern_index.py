"""Index of many patterns by fingerprint, deviation and mean, as bitmaps (goldin-1997, section 7.3.5).

The paper stores windows in a spatial index and searches it with a pattern. Here the patterns are stored, and
every new window is a search. Patterns of one length form a group. A pattern is a box in a space whose
coordinates are

- the real and imaginary parts of the first DFT coefficients of the normal form, each times √2 because the
  conjugate coefficient counts as well, so that distances in this space are at most the similarity distance;
- the length of what these coefficients leave of the normal form, which is another lower bound (the paper does
  without it);
- the logarithm of the deviation and the mean, if a pattern of the group limits them.

Each coordinate is divided into bins. A bin has a bit for each pattern whose box reaches into it. The patterns
that a window may match are the conjunction of one row of bits per coordinate. Boxes are wider than needed by
more than all rounding errors of a window's coordinates, so that no match is dismissed.

Patterns that are close to each other share a word of 64 bits, so that most words of a row are 0. A summary
has a bit for each word that isn't. The conjunction of the summaries comes first, and leaves few words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf, log2, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.similarity.best_fit import (
    DEVIATION,
    HIGH_A,
    HIGH_B,
    LIMIT,
    LIMITS,
    LOW_A,
    LOW_B,
    MEAN,
    MEAN_LOW,
)
from tamis.similarity.pattern import InternalQuery, Pattern, internal_query
from tamis.similarity.sliding_transform import Floats, Int64s, tolerance, turns

Bits = npt.NDArray[np.uint64]

# DFT coefficients of a fingerprint. Real readings have most of their energy in the first few.
WAVES = 4
# Bins of a coordinate, and one more on either side.
BINS = 64
ROWS = BINS + 2
# Coordinates: two for each coefficient, and the rest; behind them the deviation and the mean.
REST, DEVIATIONS, MEANS = 2 * WAVES, 2 * WAVES + 1, 2 * WAVES + 2
COORDINATES = 2 * WAVES + 3

# How much wider the ranges of deviations, means and products are. A window's variance is exact to 10^-7.
SLACK = 1e-6

# Columns of a group.
LENGTH, FIRST, COUNT, WORDS, BIT, SUMMARY, TURN, WAVE, LOOSE = range(9)
GROUP = 9


class PatternIndex(NamedTuple):
    """Columns of the kernels, with P patterns in G groups, ordered by length.

    - `groups` (G, GROUP): length of the windows; first pattern and number of patterns; words of a row of
      bits; where bits, summaries and turns begin; number of coefficients; number of loose patterns, which
      come first. Constant windows may match loose patterns.
    - `tolerances` (G,); `lows`, `steps` (G, COORDINATES): the least coordinate, and bins per unit. A
      coordinate without bins per unit is not in use.
    - `bits`, `summaries`: the rows of each group, by coordinate and bin. `turns`: see `sliding_transform`.
    - `numbers` (P,): the place of each pattern in the given order.
    - `points` (P, REST + 1): the coordinates of unit vectors; `reaches` (P,): the squared radius.
    - `products` (P,): the least normalized product of a window with the pattern.
    - `limits` (P, LIMITS): see `best_fit`. `places` (P,): where the pattern's values begin in `values`,
      which have mean 0.
    """

    groups: Int64s
    tolerances: Floats
    lows: Floats
    steps: Floats
    bits: Bits
    summaries: Bits
    turns: Floats
    numbers: Int64s
    points: Floats
    reaches: Floats
    products: Floats
    limits: Floats
    places: Int64s
    values: Floats


def pattern_index(patterns: Sequence[Pattern]) -> PatternIndex:
    """The index of patterns of any lengths."""
    order = sorted(range(len(patterns)), key=lambda i: len(patterns[i]))
    parts = [
        _Group([patterns[i] for i in members], np.array(members), n)
        for n, members in ((n, list(same)) for n, same in groupby(order, lambda i: len(patterns[i])))
    ]
    groups = np.zeros((len(parts), GROUP), np.int64)
    pattern = bit = summary = turn = place = 0
    places = []
    for row, part in zip(groups, parts, strict=True):
        count = len(part.numbers)
        row[[LENGTH, FIRST, COUNT, WORDS]] = part.n, pattern, count, part.bits.shape[2]
        row[[BIT, SUMMARY, TURN, WAVE]] = bit, summary, turn, part.waves
        row[LOOSE] = part.loose
        places.append(place + part.n * np.arange(count))
        pattern, place = pattern + count, place + count * part.n
        bit, summary = bit + part.bits.size, summary + part.summaries.size
        turn += part.turns.size
    return PatternIndex(
        groups,
        np.array([tolerance(part.n) for part in parts]),
        _joined([part.lows[None] for part in parts], (0, COORDINATES)),
        _joined([part.steps[None] for part in parts], (0, COORDINATES)),
        _joined([part.bits.ravel() for part in parts], (0,), np.uint64),
        _joined([part.summaries.ravel() for part in parts], (0,), np.uint64),
        _joined([part.turns.ravel() for part in parts], (0,)),
        _joined([part.numbers for part in parts], (0,), np.int64),
        _joined([part.points for part in parts], (0, REST + 1)),
        _joined([part.reaches for part in parts], (0,)),
        _joined([part.products for part in parts], (0,)),
        _joined([part.limits for part in parts], (0, LIMITS)),
        _joined(places, (0,), np.int64),
        _joined([part.values.ravel() for part in parts], (0,)),
    )


def _joined(
    parts: Sequence[npt.NDArray[Any]], none: tuple[int, ...], kind: npt.DTypeLike = np.float64
) -> npt.NDArray[Any]:
    return np.concatenate(parts, dtype=kind) if parts else np.empty(none, kind)


class _Group:
    """The columns of the patterns of one length."""

    def __init__(self, patterns: Sequence[Pattern], numbers: Int64s, n: int) -> None:
        self.n = n
        self.waves = min(WAVES, n // 2)
        self.turns = turns(n, self.waves)
        points = self._points(patterns)
        queries = [internal_query(pattern) for pattern in patterns]
        loose = np.isinf([query.distance for query in queries])
        self.loose = int(loose.sum())
        order = np.concatenate(
            [part for which in (loose, ~loose) for part in _clusters(points, np.flatnonzero(which))]
        )
        patterns, queries = [patterns[i] for i in order], [queries[i] for i in order]
        self.points, self.numbers = points[order], numbers[order]
        distances = np.array([query.distance for query in queries])
        # The square of the rest is as exact as the variance; the rest itself is not, if it is close to 0.
        around = distances + 2 * sqrt(tolerance(n))
        self.reaches = around**2
        self.products = 1 - distances**2 / 2 - SLACK
        self.values = np.array([pattern.centred for pattern in patterns])
        self.limits = np.array([_limits(pattern) for pattern in patterns])
        self._boxes(queries, around)

    def _points(self, patterns: Sequence[Pattern]) -> Floats:
        normal = np.array([pattern.centred / pattern.deviation for pattern in patterns])
        points = np.zeros((len(patterns), REST + 1))
        points[:, : 2 * self.waves] = normal @ (self.turns * weights(self.n, self.waves))
        points[:, 1 : 2 * self.waves : 2] *= -1
        points[:, REST] = np.sqrt(np.maximum(1 - (points**2).sum(axis=1), 0))
        return points

    def _boxes(self, queries: Sequence[InternalQuery], around: Floats) -> None:
        ends = [(column - around, column + around) for column in self.points.T]
        for limits in (_logarithms, _means):
            low, high = np.array([limits(query) for query in queries]).T
            ends.append((low, high))
        self.lows, self.steps = np.zeros(COORDINATES), np.zeros(COORDINATES)
        self.bits = np.zeros((COORDINATES, ROWS, -(-len(queries) // 64)), np.uint64)
        row = np.arange(ROWS)[:, None]
        for at, (low, high) in enumerate(ends):
            finite = np.concatenate([low, high])
            finite = finite[np.isfinite(finite)]
            if len(finite) == 0 and at:
                continue  # the first coordinate is always in use: it knows which bits are patterns
            self.lows[at] = finite.min() if len(finite) else 0.0
            self.steps[at] = BINS / max(np.ptp(finite) if len(finite) else 0.0, SLACK)
            first, last = (_bins(end, self.lows[at], self.steps[at]) for end in (low, high))
            self.bits[at] = _packed((first <= row) & (row <= last))
        self.summaries = _packed(self.bits != 0)


def _bins(values: Floats, low: float, step: float) -> Int64s:
    """The bins of values of a coordinate; the first and the last are those beyond all ends of boxes."""
    place = np.clip((values - low) * step, -1.0, BINS)
    return np.floor(place).astype(np.int64) + 1


def weights(n: int, waves: int) -> Floats:
    """The weights of real and imaginary parts that make a normal form of length n a unit vector, of shape
    (2 * waves,). The coefficient n/2 has no conjugate besides itself.
    """
    single = 2 * np.arange(1, waves + 1) == n
    return np.repeat(np.where(single, 1.0, np.sqrt(2.0)), 2) / n


def _clusters(points: Floats, members: Int64s) -> Iterator[Int64s]:
    """The members in an order in which neighbours share words: halves of the widest coordinate, again and
    again, each but the last of whole words.
    """
    if len(members) <= 64:
        yield members
        return
    mine = points[members]
    widest = np.argmax(np.ptp(mine, axis=0))
    half = (len(members) + 64) // 128 * 64
    order = np.argpartition(mine[:, widest], half)
    yield from _clusters(points, members[order[:half]])
    yield from _clusters(points, members[order[half:]])


def _packed(flags: npt.NDArray[np.bool_]) -> Bits:
    """The last axis as words, from the lowest bit on."""
    width = -(-flags.shape[-1] // 64) * 64
    padded = np.zeros((*flags.shape[:-1], width), np.bool_)
    padded[..., : flags.shape[-1]] = flags
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def _logarithms(query: InternalQuery) -> tuple[float, float]:
    low, high = query.deviation
    return (log2(low) - SLACK if low > 0 else -inf), (log2(high) + SLACK if high < inf else inf)


def _means(query: InternalQuery) -> tuple[float, float]:
    """The range of the mean, made wider by more than the rounding of the mean of a window in the range of
    deviations. Without a limit on the deviation there is none on the rounding.
    """
    if query.deviation[1] == inf:
        return -inf, inf
    low, high = query.mean
    slack = [SLACK * query.deviation[1] + SLACK * abs(end) if abs(end) < inf else nan for end in (low, high)]
    return (low - slack[0] if low > -inf else -inf), (high + slack[1] if high < inf else inf)


def _limits(pattern: Pattern) -> Floats:
    limits = np.empty(LIMITS)
    limits[[DEVIATION, MEAN, MEAN_LOW, LIMIT]] = (
        *(pattern.deviation, pattern.mean),
        *(pattern.mean_low, pattern.limit),
    )
    limits[[LOW_A, HIGH_A]], limits[[LOW_B, HIGH_B]] = pattern.scale, pattern.shift
    return limits

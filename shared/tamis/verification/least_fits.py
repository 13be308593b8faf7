"""The least distance of a pattern to windows by direct computation, in long doubles or in fractions.

A window S matches a pattern Q by the least sqrt(mean((Q - (a S + b))²)) over scales a > 0 and shifts b in
their ranges. This is a convex function of (a, b). So its least value is where its gradient is 0, on an edge
of the rectangle, or in a corner. All of these are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LongDoubles = NDArray[np.longdouble]
Limits = tuple[float, float]

# A window with a smaller variance counts as constant.
LEAST_VARIANCE = 1e-300

_EPSILON = np.finfo(np.longdouble).eps


class Fits(NamedTuple):
    """Least distances, and the scales and shifts where they are; arrays of shape (windows,).

    `error` bounds the rounding error of the distance.
    """

    distance: LongDoubles
    scale: LongDoubles
    shift: LongDoubles
    error: LongDoubles


def limits_of(ends: tuple[float | None, float | None] | None, least: float) -> Limits:
    """A range with numbers for the ends that are left open."""
    low, high = ends or (None, None)
    return max(least, -inf if low is None else low), inf if high is None else high


class Pairs:
    """A pattern of shape (n,) with each of the windows of shape (windows, n), in long doubles."""

    def __init__(self, pattern: Floats, windows: Floats) -> None:
        shape = pattern.astype(np.longdouble) - pattern[0]
        self.q = shape - shape.mean()
        self.q_mean = shape.mean() + pattern[0]
        # A large offset cancels before anything is summed.
        rest: LongDoubles = windows.astype(np.longdouble) - windows[:, -1:]
        means: LongDoubles = rest.mean(axis=1)
        self.s = rest - means[:, None]
        self.s_mean = means + windows[:, -1]
        variance: LongDoubles = (self.s * self.s).mean(axis=1)
        self.s[variance < LEAST_VARIANCE] = 0
        self.variance: LongDoubles = np.where(variance < LEAST_VARIANCE, 0, variance)

    def distance(self, a: LongDoubles, offset: LongDoubles) -> LongDoubles:
        """The distance for a scale of each window, and the mean of the mapped window less the pattern's."""
        residual = self.q - a[:, None] * self.s
        found: LongDoubles = np.sqrt((residual * residual).mean(axis=1) + offset * offset)
        return found

    def offset(self, a: LongDoubles, b: LongDoubles) -> LongDoubles:
        """The mean of a window, mapped by scale and shift, less the mean of the pattern."""
        found: LongDoubles = a * self.s_mean + b - self.q_mean
        return found


def least_fits(pairs: Pairs, scale: Limits, shift: Limits) -> Fits:
    """The least distance of each window; inf if it is only approached as the scale falls to 0."""
    cross: LongDoubles = (pairs.s * pairs.q).mean(axis=1)
    means, count = pairs.s_mean, len(pairs.s)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        tried = [cross / pairs.variance, np.ones(count, np.longdouble)]
        tried += [
            (cross + means * (pairs.q_mean - end)) / (pairs.variance + means * means)
            for end in shift
            if isfinite(end)
        ]
        tried += [np.full(count, end, np.longdouble) for end in scale if isfinite(end)]
        best = np.full((3, count), np.inf, np.longdouble)
        for column in tried:
            a = np.clip(np.where(np.isfinite(column), column, 1), *scale)
            wanted = pairs.q_mean - a * means
            b = np.clip(wanted, *shift)
            found = np.where(a > 0, pairs.distance(a, b - wanted), np.inf)
            best = np.where(found < best[0], np.array([found, a, b]), best)
        distance, a, b = best
        size = np.abs(pairs.q).max() + np.abs(a) * np.abs(pairs.s).max(axis=1)
        # Only a shift at an end of its range leaves an offset, whose parts are rounded.
        at_end = (b == shift[0]) | (b == shift[1])
        size += np.where(at_end, np.abs(a * means) + np.abs(b) + abs(pairs.q_mean), 0)
        error = np.where(np.isfinite(distance), 64 * _EPSILON * size, 0)
    return Fits(distance, a, b, error)


def exact_distance(pattern: Sequence[float], window: Sequence[float], scale: Limits, shift: Limits) -> float:
    """The least distance of one window from exact arithmetic, rounded once; inf as in `least_fits`."""
    q, s = [Fraction(v) for v in pattern], [Fraction(v) for v in window]
    n = len(q)
    q_mean, s_mean = _sum(q) / n, _sum(s) / n
    variance = _sum((y - s_mean) ** 2 for y in s) / n
    cross = _sum((x - q_mean) * (y - s_mean) for x, y in zip(q, s, strict=True)) / n
    if variance < LEAST_VARIANCE:
        variance = cross = Fraction(0)
    rest = _sum((x - q_mean) ** 2 for x in q) / n
    squares = variance + s_mean**2
    tried = [Fraction(1), *(Fraction(end) for end in scale if isfinite(end))]
    tried += [cross / variance] if variance else []
    tried += [
        (cross + s_mean * (q_mean - Fraction(end))) / squares for end in shift if isfinite(end) and squares
    ]
    best: Fraction | None = None
    for a in (_clip(one, scale) for one in tried):
        offset = a * s_mean + _clip(q_mean - a * s_mean, shift) - q_mean
        found = rest - 2 * a * cross + a * a * variance + offset**2
        if a > 0 and (best is None or found < best):
            best = found
    return inf if best is None else sqrt(best)


def _sum(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def _clip(value: Fraction, ends: Limits) -> Fraction:
    if value < ends[0]:
        return Fraction(ends[0])
    return Fraction(ends[1]) if value > ends[1] else value

"""The least distance of patterns to windows by direct computation, in long doubles or in fractions.

Shares no code with the kernels. The shift is counted from the shift that makes the means equal, so that a
large offset of the readings cancels before anything is squared.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LongDoubles = npt.NDArray[np.longdouble]
Range = tuple[float, float]


def least_distances(pattern: Floats, windows: Floats, scale: Range, shift: Range) -> LongDoubles:
    """The least sqrt(mean((Q - (a S + b))²)) for each window S, of shape (windows,).

    Of a convex function over a rectangle, the least value is at the point where the gradient is zero, on an
    edge, or in a corner. All of these are tried.
    """
    values = pattern.astype(np.longdouble) - pattern[0]
    mean = np.longdouble(values.mean())
    values -= mean
    mean += pattern[0]
    rest: LongDoubles = windows.astype(np.longdouble)
    first = rest[:, :1].copy()
    rest -= first
    means: LongDoubles = rest.mean(axis=1)
    rest -= means[:, None]
    means += first[:, 0]
    spread, cross = (rest * rest).mean(axis=1), (rest * values).mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scales = [cross / spread, np.ones(len(rest), np.longdouble)]
        scales += [
            (cross + means * (mean - end)) / (spread + means * means) for end in shift if np.isfinite(end)
        ]
        scales += [np.full(len(rest), end, np.longdouble) for end in scale if np.isfinite(end)]
        best = np.full(len(rest), np.inf, np.longdouble)
        for column in scales:
            a = np.clip(np.where(np.isfinite(column), column, 1), *scale)
            low, high = (end + a * means - mean for end in shift)
            moved = np.minimum(np.maximum(low, 0), high)
            residual = values - a[:, None] * rest - moved[:, None]
            found = np.sqrt((residual * residual).mean(axis=1))
            best = np.minimum(best, np.where(a > 0, found, np.inf))
    return best


def least_square(
    pattern: list[float], window: list[float], scale: Range, shift: Range
) -> tuple[Fraction, Fraction]:
    """The infimum of mean((Q - (a S + b))²), exactly, and the scale where it is."""
    q, s = [Fraction(v) for v in pattern], [Fraction(v) for v in window]

    def mean(values: list[Fraction]) -> Fraction:
        return sum(values, Fraction(0)) / len(values)

    def square(a: Fraction, b: Fraction) -> Fraction:
        return mean([(x - a * y - b) ** 2 for x, y in zip(q, s, strict=True)])

    mean_q, mean_s = mean(q), mean(s)
    spread = mean([(y - mean_s) ** 2 for y in s])
    cross = mean([(x - mean_q) * (y - mean_s) for x, y in zip(q, s, strict=True)])
    low_a = Fraction(max(scale[0], 0.0))
    high_a = Fraction(scale[1]) if np.isfinite(scale[1]) else None
    ends = [Fraction(end) for end in shift if np.isfinite(end)]

    def allowed(a: Fraction) -> Fraction:
        a = low_a if a < low_a else a
        return a if high_a is None or a < high_a else high_a

    def best_shift(a: Fraction) -> Fraction:
        b: Fraction = mean_q - a * mean_s
        if np.isfinite(shift[0]):
            b = max(Fraction(shift[0]), b)
        if np.isfinite(shift[1]):
            b = min(b, Fraction(shift[1]))
        return b

    scales = [Fraction(1), low_a, *([high_a] if high_a is not None else [])]
    scales += [cross / spread] if spread else []
    squares = spread + mean_s * mean_s
    scales += [(cross + mean_s * (mean_q - end)) / squares for end in ends if squares]
    tried = [(square(a, b), a) for a, b in ((allowed(a), best_shift(allowed(a))) for a in scales)]
    tried += [(square(a, b), a) for a, b in product(map(allowed, scales), ends)]
    return min(tried)

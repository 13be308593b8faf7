"""The scale and shift within their ranges that map a window closest to a pattern (goldin-1997, 7.5.4).

For a pattern Q with mean M and a window S with mean m, D²(Q, aS + b) = mean((q - a s)²) + (a m + b - M)²,
where q and s have mean 0. This is a convex quadratic function of (a, b), so that its least value over a
rectangle is easy to find. If the best b for the best a is allowed, it is the solution. Otherwise b is one of
the ends of its range, and a minimises the function along that edge. The paper maps the rectangle and takes
the point that is closest to the origin, which is the same point. This form needs no normal form of S, so that
a constant window is no special case.

The distance is computed as it is defined, from the residuals. Products and squares of means would lose the
digits that decide about a small epsilon. The shift of a window with a large offset is the difference of large
numbers: with readings around 10^9, one rounding would be as large as a tolerance of 10^-7. Therefore it is
computed from pairs of doubles, without a rounding error.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.similarity.sliding_transform import Floats

# 2^27 + 1 splits a double into two halves of at most 26 bits (Veltkamp), whose products are exact (Dekker).
_SPLITTER = 134217729.0


@njit(cache=True, error_model="numpy")
def two_sum(x: float, y: float) -> tuple[float, float]:
    """The rounded sum of `x` and `y`, and its rounding error, exactly (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@njit(cache=True, error_model="numpy")
def two_product(x: float, y: float) -> tuple[float, float]:
    """The rounded product of `x` and `y`, and its rounding error, exactly unless it overflows (Dekker)."""
    product = x * y
    c = _SPLITTER * x
    x_high = c - (c - x)
    x_low = x - x_high
    c = _SPLITTER * y
    y_high = c - (c - y)
    y_low = y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@njit(cache=True, error_model="numpy")
def line_offset(a: float, x: float, x_low: float, b: float, y: float, y_low: float) -> float:
    """`a * (x + x_low) + b - (y + y_low)`, rounded about once."""
    product, error = two_product(a, x)
    total, more = two_sum(product, b)
    total, rest = two_sum(total, -y)
    return total + (error + more + rest + a * x_low - y_low)


# Columns of a pattern's limits.
DEVIATION, MEAN, MEAN_LOW, LIMIT, LOW_A, HIGH_A, LOW_B, HIGH_B = range(8)
LIMITS = 8

# A smaller variance comes from differences whose squares aren't normal numbers; such a window is constant.
LEAST_VARIANCE = 1e-300


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def product(pattern: Floats, readings: Floats, base: float) -> float:
    """The sum of `pattern * (readings - base)` over two arrays of one length."""
    total = 0.0
    for i in range(len(pattern)):
        total += pattern[i] * (readings[i] - base)
    return total


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def _residual(pattern: Floats, centred: Floats, a: float) -> float:
    """The mean of `(pattern - a * centred)²`."""
    total = 0.0
    for i in range(len(pattern)):
        r = pattern[i] - a * centred[i]
        total += r * r
    return total / len(pattern)


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def _centre(readings: Floats, base: float, centred: Floats) -> tuple[float, float]:
    """Write the readings less their mean to `centred`; returns the mean less `base`, and the variance."""
    n = len(readings)
    total = 0.0
    for i in range(n):
        d = readings[i] - base
        centred[i] = d
        total += d
    mean = total / n
    squares = 0.0
    for i in range(n):
        d = centred[i] - mean
        centred[i] = d
        squares += d * d
    return mean, squares / n


@njit(cache=True, error_model="numpy")
def best_fit(
    pattern: Floats, limits: Floats, readings: Floats, centred: Floats
) -> tuple[float, float, float]:
    """The least distance of a pattern to a window, and its scale and shift.

    `pattern` has the values less their mean, `readings` the window; `centred` is room for as many. The scale
    is 0 where the distance has no least value because it falls as the scale approaches 0. Where many scales
    are equally good (for a constant window), it is 1 if that is one of them.
    """
    n = len(readings)
    base = readings[n - 1]
    mean, spread = _centre(readings, base, centred)
    low_a, high_a, low_b, high_b = limits[LOW_A], limits[HIGH_A], limits[LOW_B], limits[HIGH_B]
    m, mean_low = limits[MEAN], limits[MEAN_LOW]
    cross = 0.0
    a = 1.0
    if spread >= LEAST_VARIANCE:
        cross = product(pattern, centred[:n], 0.0) / n
        a = cross / spread
    else:
        spread = 0.0
        centred[:n] = 0.0
    a = min(max(a, low_a), high_a)
    b = -line_offset(a, base, mean, 0.0, m, mean_low)
    if low_b <= b <= high_b:
        return np.sqrt(_residual(pattern, centred, a)), a, b
    best, best_a, best_b = np.inf, 0.0, 0.0
    level = base + mean
    steepness = spread + level * level
    for edge in (low_b, high_b):
        if np.isinf(edge):
            continue
        a = (cross + level * (m - edge)) / steepness if steepness > 0.0 else 1.0
        a = min(max(a, low_a), high_a)
        offset = line_offset(a, base, mean, edge, m, mean_low)
        # Doubles may be too far apart to hold the best scale of a window with a large offset. The distance is
        # that of the best scale, a step of Newton's method away.
        slope = spread * a - cross
        step = -(slope + level * offset) / steepness if steepness > 0.0 else 0.0
        step = min(max(step, low_a - a), high_a - a)
        offset += step * level
        found = _residual(pattern, centred, a) + step * (2 * slope + step * spread) + offset * offset
        if found < best:
            best, best_a, best_b = found, a, edge
    return np.sqrt(max(best, 0.0)), best_a, best_b

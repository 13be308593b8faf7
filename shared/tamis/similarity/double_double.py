"""Sums and products of doubles without a rounding error, as pairs of doubles.

The shift of a window with a large offset is the difference of large numbers: with readings around 10^9, one
rounding would be as large as a tolerance of 10^-7.
"""

from __future__ import annotations

from tamis.kernels import njit

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

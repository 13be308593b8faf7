"""Closed intervals of DOUBLEs with outward rounding.

The interval that an operation returns contains the exact result and the computed result. Many intervals are
computed at once: an `Interval` is two arrays of one shape, the lower and the upper ends, which may be
infinite.

The results of +, -, *, / and sqrt are rounded to nearest, as IEEE 754 demands. An end that isn't exact is
then moved outwards by one step. For functions of the C library, Arb gives an interval that contains the exact
result (a *ball*). It is moved outwards by the possible error of the C library. Each different end is computed
only once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.expressions.functions.entry import FUNCTIONS, RealFunction
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER

MAX = sys.float_info.max
INF = np.inf
_TINY = 5e-324
_LIBRARY = 4  # steps: the C library's exp and log err by less than one, pow and rounding of ends included

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Interval(NamedTuple):
    """All numbers from `lo` to `hi`, for each place of the arrays."""

    lo: Array
    hi: Array

    def holds(self, value: float) -> Mask:
        """The intervals that contain `value`."""
        inside: Mask = (self.lo <= value) & (value <= self.hi)
        return inside

    @property
    def magnitude(self) -> Array:
        """The greatest absolute value."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))


def span(lo: float, hi: float) -> Interval:
    """One interval."""
    return Interval(np.float64(lo) + np.zeros(()), np.float64(hi) + np.zeros(()))


def point(value: float) -> Interval:
    """The interval of one number."""
    return span(value, value)


WHOLE = span(-INF, INF)
ZERO = point(0.0)
ONE = point(1.0)
TWO = point(2.0)
UNIT = span(-1.0, 1.0)


def hull(*parts: Interval) -> Interval:
    """The least interval that contains all of `parts`, place by place."""
    lo, hi = parts[0]
    for part in parts[1:]:
        lo, hi = np.minimum(lo, part.lo), np.maximum(hi, part.hi)
    return Interval(lo, hi)


def where(condition: Mask, yes: Interval, no: Interval) -> Interval:
    """`yes` where the condition holds, else `no`."""
    return Interval(np.where(condition, yes.lo, no.lo), np.where(condition, yes.hi, no.hi))


def clipped(a: Interval, least: float, most: float) -> Interval:
    """The part of `a` between two limits; the limits themselves where it has none."""
    lo, hi = np.maximum(a.lo, least), np.minimum(a.hi, most)
    return where(lo <= hi, Interval(lo, hi), span(least, most))


def _down(value: Array, steps: int = 1) -> Array:
    """The next number towards minus infinity; 0 stays 0, and the caller handles a 0 that is not exact."""
    out = value
    for _ in range(steps):
        out = np.nextafter(out, -INF)
    return np.where(value == 0.0, value, out)


def _up(value: Array, steps: int = 1) -> Array:
    return -_down(-value, steps)


def add(a: Interval, b: Interval) -> Interval:
    """a + b."""
    return Interval(_sum_down(a.lo, b.lo), -_sum_down(-a.hi, -b.hi))


def _sum_down(x: Array, y: Array) -> Array:
    """x + y rounded down, or unchanged if it is exact. Knuth's two-sum gives the exact error of a sum."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    out = np.where(error == 0.0, total, _down(total))
    return np.where(np.isnan(total), -INF, out)


def neg(a: Interval) -> Interval:
    """-a."""
    return Interval(-a.hi, -a.lo)


def sub(a: Interval, b: Interval) -> Interval:
    """a - b."""
    return add(a, neg(b))


def _times(x: Array, y: Array) -> Array:
    """x * y, where 0 times an infinite end is 0: infinite ends are limits of finite values."""
    product = x * y
    return np.where(np.isnan(product), 0.0, product)


def mul(a: Interval, b: Interval) -> Interval:
    """a * b."""
    first, second = _times(a.lo, b.lo), _times(a.lo, b.hi)
    third, fourth = _times(a.hi, b.lo), _times(a.hi, b.hi)
    lo = np.minimum(np.minimum(first, second), np.minimum(third, fourth))
    hi = np.maximum(np.maximum(first, second), np.maximum(third, fourth))
    exact: Mask = np.abs(lo) <= LARGEST_EXACT_INTEGER
    if exact.any():
        exact &= _small_integer(a.lo) & _small_integer(a.hi) & _small_integer(b.lo) & _small_integer(b.hi)
        exact &= np.abs(hi) <= LARGEST_EXACT_INTEGER
    # A product that underflows to 0 has the sign of its factors, and may not be taken for exactly 0.
    negative = ((a.lo < 0) & (b.hi > 0)) | ((a.hi > 0) & (b.lo < 0))
    positive = ((a.lo < 0) & (b.lo < 0)) | ((a.hi > 0) & (b.hi > 0))
    low = np.where((lo == 0.0) & negative, -_TINY, _down(lo))
    high = np.where((hi == 0.0) & positive, _TINY, _up(hi))
    return Interval(np.where(exact, lo, low), np.where(exact, hi, high))


def _small_integer(value: Array) -> Mask:
    small: Mask = (np.abs(value) <= LARGEST_EXACT_INTEGER) & (value == np.floor(value))
    return small


def recip(a: Interval) -> Interval:
    """1 / a. It is everything where 0 is inside; 0 at an end is a limit."""
    lo = np.where(a.hi == 0.0, -INF, _down(1.0 / a.hi))
    hi = np.where(a.lo == 0.0, INF, _up(1.0 / a.lo))
    crossing = ((a.lo < 0.0) & (a.hi > 0.0)) | ((a.lo == 0.0) & (a.hi == 0.0))
    return where(crossing, WHOLE, Interval(lo, hi))


def div(a: Interval, b: Interval) -> Interval:
    """a / b. It is everything where 0 is inside b; 0 at an end of b is a limit."""
    out = mul(a, recip(b))
    # Whole ends with whole quotients are exact: 100 / 100 is 1, and 1 - 100 / 100 has a sign.
    whole = _small_integer(a.lo) & _small_integer(a.hi) & _small_integer(b.lo) & _small_integer(b.hi)
    whole &= (b.lo > 0.0) | (b.hi < 0.0)
    if not whole.any():
        return out
    ends = [x / y for x in a for y in b]
    lo = np.minimum(np.minimum(ends[0], ends[1]), np.minimum(ends[2], ends[3]))
    hi = np.maximum(np.maximum(ends[0], ends[1]), np.maximum(ends[2], ends[3]))
    return Interval(
        np.where(whole & _small_integer(lo), lo, out.lo), np.where(whole & _small_integer(hi), hi, out.hi)
    )


def absolute(a: Interval) -> Interval:
    """|a|."""
    inside = where(a.hi <= 0, neg(a), Interval(np.zeros_like(a.lo), a.magnitude))
    return where(a.lo >= 0, a, inside)


def square(a: Interval) -> Interval:
    """a * a, where both factors are the same value."""
    size = absolute(a)
    return mul(size, size)


def at_ends(rising: Callable[[Array], Array], a: Interval) -> Interval:
    """The values of a function that never falls and is computed without error."""
    return Interval(rising(a.lo), rising(a.hi))


def sqrt(a: Interval) -> Interval:
    """The square roots of the part of `a` that is not negative."""
    root = Interval(np.sqrt(np.maximum(a.lo, 0.0)), np.sqrt(np.maximum(a.hi, 0.0)))
    return Interval(_down(root.lo), _up(root.hi))


def of_real(rules: RealFunction, a: Interval) -> Interval:
    """The values of a function of one number that never falls, in the part of `a` in its domain."""
    if rules.scalar is math.sqrt:
        return sqrt(a)
    least = rules.least if rules.closed else math.nextafter(rules.least, INF)
    lo, hi = _balls(rules.ball, Interval(np.maximum(a.lo, least), np.maximum(a.hi, least)))
    return Interval(np.maximum(_down(lo, _LIBRARY), rules.lowest), _up(hi, _LIBRARY))


_EXP, _LN = (FUNCTIONS[name].real for name in ("exp", "ln"))


def exp(a: Interval) -> Interval:
    """e to the power of `a`."""
    assert _EXP is not None
    return of_real(_EXP, a)


def ln(a: Interval) -> Interval:
    """The natural logarithms of the positive part of `a`."""
    assert _LN is not None
    return of_real(_LN, a)


def _balls(rising: Callable[[arb], arb], a: Interval) -> Interval:
    """A rising function of both ends: from the lower end of the lower one's ball to the upper end of the
    upper one's.

    Boxes share ends: 20,000 boxes in two columns have some 300 different ends in a column.
    """
    lows, low_at = np.unique(a.lo, return_inverse=True)
    highs, high_at = np.unique(a.hi, return_inverse=True)
    lo = np.array([_end(rising(arb(x)).lower(), -_TINY) for x in lows.tolist()])
    hi = np.array([_end(rising(arb(x)).upper(), _TINY) for x in highs.tolist()])
    # A ball around what can't be enclosed, and ends beyond what arb keeps exactly.
    lo, hi = np.where(np.isnan(lo), -INF, lo), np.where(np.isnan(hi), INF, hi)
    return Interval(lo[low_at].reshape(np.shape(a.lo)), hi[high_at].reshape(np.shape(a.hi)))


def _end(exact: arb, tiny: float) -> float:
    """An end as a DOUBLE; `tiny` where it isn't 0, but too small for a DOUBLE."""
    value = float(exact)
    return tiny if value == 0.0 and not exact.is_zero() else value


def power_int(a: Interval, n: int) -> Interval:
    """a to the whole power n. It is everything for n < 0 with 0 inside."""
    if n < 0:
        return recip(power_int(a, -n))
    if n == 0:
        return ONE
    if n % 2 == 0:
        return _positive_power(absolute(a), n)
    low, high = (_positive_power(absolute(Interval(end, end)), n) for end in a)
    return Interval(np.where(a.lo >= 0, low.lo, -low.hi), np.where(a.hi >= 0, high.hi, -high.lo))


def _positive_power(a: Interval, n: int) -> Interval:
    """The power of a non-negative interval, by repeated squaring."""
    out, factor = ONE, a
    while n:
        if n & 1:
            out = mul(out, factor)
        n >>= 1
        if n:
            factor = mul(factor, factor)
    return out


def power(a: Interval, b: Interval) -> Interval:
    """a to the power b, as exp(b * ln a), for `a` >= 0, where 0 at the lower end of `a` is a limit."""
    out = exp(mul(b, ln(a)))
    out = Interval(_down(out.lo, _LIBRARY), _up(out.hi, _LIBRARY))
    return where(a.lo <= 0, hull(ZERO, ONE, out), out)

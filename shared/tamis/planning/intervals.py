"""Closed intervals of DOUBLE with outward rounding: every operation encloses the exact and the computed
result.

+, -, *, / and sqrt are rounded to nearest and widened by one step; exp, ln, log10 and power come from arb
(rigorous) and are widened by two, which also covers the C library's last bit. Ends may be infinite.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

MAX = sys.float_info.max
INF = math.inf


class Interval(NamedTuple):
    """All numbers from `lo` to `hi`."""

    lo: float
    hi: float

    @property
    def width(self) -> float:
        """hi - lo."""
        return self.hi - self.lo

    def holds(self, value: float) -> bool:
        """Is `value` inside?"""
        return self.lo <= value <= self.hi

    @property
    def magnitude(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def finite(self) -> bool:
        """Are both ends finite?"""
        return self.lo > -INF and self.hi < INF


WHOLE = Interval(-INF, INF)
ZERO = Interval(0.0, 0.0)
ONE = Interval(1.0, 1.0)


def point(value: float) -> Interval:
    """The interval of one number."""
    return Interval(value, value)


def hull(*parts: Interval) -> Interval:
    """The least interval that contains all of `parts`."""
    return Interval(min(p.lo for p in parts), max(p.hi for p in parts))


def widen(lo: float, hi: float, steps: int = 1) -> Interval:
    """[lo, hi] with each end moved outwards by `steps` representable numbers; what is exactly 0 stays."""
    for _ in range(steps):
        lo = lo if lo == 0.0 else math.nextafter(lo, -INF)
        hi = hi if hi == 0.0 else math.nextafter(hi, INF)
    return Interval(lo, hi)


def add(a: Interval, b: Interval) -> Interval:
    """a + b."""
    lo, hi = a.lo + b.lo, a.hi + b.hi
    if math.isnan(lo) or math.isnan(hi):
        return WHOLE
    return Interval(lo, hi) if _small_integers(a, b, lo, hi) else widen(lo, hi)


def neg(a: Interval) -> Interval:
    """-a."""
    return Interval(-a.hi, -a.lo)


def sub(a: Interval, b: Interval) -> Interval:
    """a - b."""
    return add(a, neg(b))


def mul(a: Interval, b: Interval) -> Interval:
    """a * b, where 0 times an infinite end is 0: ends stand for limits of finite values."""
    ends = [0.0 if x == 0.0 or y == 0.0 else x * y for x in a for y in b]
    lo, hi = min(ends), max(ends)
    if _small_integers(a, b, lo, hi):
        return Interval(lo, hi)
    out = widen(lo, hi)
    # A product that underflows to 0 has the sign of its factors, and may not be taken for exactly 0.
    tiny = math.ulp(0.0)
    return Interval(
        -tiny if out.lo == 0.0 and _may_be_negative(a, b) else out.lo,
        tiny if out.hi == 0.0 and _may_be_positive(a, b) else out.hi,
    )


def _may_be_negative(a: Interval, b: Interval) -> bool:
    return (a.lo < 0 and b.hi > 0) or (a.hi > 0 and b.lo < 0)


def _may_be_positive(a: Interval, b: Interval) -> bool:
    return (a.lo < 0 and b.lo < 0) or (a.hi > 0 and b.hi > 0)


def _small_integers(a: Interval, b: Interval, lo: float, hi: float) -> bool:
    """Is the operation exact: on whole numbers, with whole results that doubles hold?"""
    ends = (*a, *b, lo, hi)
    return all(abs(e) <= 2.0**53 and e == math.floor(e) for e in ends)


def recip(a: Interval) -> Interval:
    """1 / a, for an `a` without 0 inside; 0 at an end is a limit."""
    if a.lo < 0 < a.hi or a.lo == a.hi == 0:
        return WHOLE
    lo = -INF if a.hi == 0 else 1 / a.hi
    hi = INF if a.lo == 0 else 1 / a.lo
    return widen(lo, hi)


def absolute(a: Interval) -> Interval:
    """|a|."""
    if a.lo >= 0:
        return a
    return neg(a) if a.hi <= 0 else Interval(0.0, a.magnitude)


def square(a: Interval) -> Interval:
    """a * a of one and the same value."""
    b = absolute(a)
    return mul(b, b)


def sqrt(a: Interval) -> Interval:
    """The square roots of what is not negative in `a`."""
    lo, hi = max(a.lo, 0.0), max(a.hi, 0.0)
    out = widen(math.sqrt(lo), math.sqrt(hi))
    return Interval(max(out.lo, 0.0), out.hi)


def _rigorous(function: Callable[[arb], arb], value: float) -> Interval:
    """function(value) as an interval, by arb."""
    ball = function(arb(value))
    if not ball.is_finite():
        return WHOLE
    return widen(float(ball.lower()), float(ball.upper()), 2)


def exp(a: Interval) -> Interval:
    """e to the power of `a`."""
    lo = 0.0 if a.lo < -700 else _rigorous(arb.exp, a.lo).lo
    hi = INF if a.hi > 709.78 else 1e-300 if a.hi < -700 else _rigorous(arb.exp, a.hi).hi
    return Interval(max(lo, 0.0), hi)


def ln(a: Interval) -> Interval:
    """The natural logarithms of what is positive in `a`."""
    least = math.ulp(0.0)
    lo = _rigorous(arb.log, max(a.lo, least)).lo
    hi = INF if a.hi == INF else _rigorous(arb.log, max(a.hi, least)).hi
    return Interval(lo, hi)


LN10 = _rigorous(arb.log, 10.0)


def power_int(a: Interval, n: int) -> Interval:
    """a to the whole power n; for n < 0 an `a` without 0 inside."""
    if n == 0:
        return ONE
    if n < 0:
        return recip(power_int(a, -n))
    base = absolute(a) if n % 2 == 0 else a

    def end(value: float) -> Interval:
        if value == 0.0 or math.isinf(value):
            return point(value**n)
        if value == math.floor(value) and abs(value) <= 2.0 ** (53 / n):
            return point(value**n)
        return _rigorous(lambda x: x**n, value)

    lo, hi = end(base.lo).lo, end(base.hi).hi
    return Interval(max(lo, 0.0), hi) if n % 2 == 0 or base.lo >= 0 else Interval(lo, hi)


def power(a: Interval, b: Interval) -> Interval:
    """a to the power b for positive `a`, as exp(b * ln a); 0 at a's lower end is a limit."""
    if a.lo <= 0:
        rest = Interval(math.ulp(0.0), max(a.hi, math.ulp(0.0)))
        return hull(ZERO, ONE, exp(mul(b, ln(rest))))
    out = exp(mul(b, ln(a)))
    return Interval(out.lo if out.lo <= 0 else out.lo * (1 - 1e-12), out.hi * (1 + 1e-12))

"""Rules of differentiation of functions with steps: those that round a number, MOD, COALESCE and bits.

Operators of bits have enclosures by the signs of their operands.
"""

from __future__ import annotations

import math

import numpy as np

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import REWRITE, Derivatives, PossibleNulls
from tamis.certificates.interval_arithmetic.intervals import WHOLE, ZERO, Interval, Mask
from tamis.expressions.functions.entry import FUNCTIONS, Steps
from tamis.expressions.functions.rounding import rounded
from tamis.expressions.nodes import Call, Literal, Type

# Beyond this size, rounding to a number of digits may overflow, and the function may fall.
MOST_ROUNDED = 1e250
_RISING = iv.span(0.0, math.inf)

_INT64 = 2.0**63
_MINUS_ONE = iv.point(-1.0)


def step(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """A function that rounds: its slope is 0 or, at a step, infinite."""
    a = args[0]
    steps = FUNCTIONS[expr.op].steps
    assert steps is not None
    value = _rounded(expr, steps, a.value)
    if steps.limit is not None and a.varies:
        limit = float(steps.limit)
        nulls.add((value.lo < -limit) | (value.hi >= limit), expr, "may be too large for its type")
    if not a.varies:
        return Derivatives(value)
    return Derivatives(value, iv.mul(_RISING, a.first), WHOLE, True)


def _rounded(expr: Call, steps: Steps, a: Interval) -> Interval:
    """The values of a function with steps over an interval."""
    digits = digits_of(expr)
    if digits == 0:
        return iv.at_ends(steps.ends, a)
    small = a.magnitude < MOST_ROUNDED
    near = iv.at_ends(lambda x: rounded(np.where(small, x, 0.0), digits), a)
    apart = 10.0**-digits
    far = iv.add(iv.mul(a, iv.span(1 - 2.0**-40, 1 + 2.0**-40)), iv.span(-apart, apart))
    return iv.where(small, near, iv.hull(a, far, ZERO))


def digits_of(expr: Call) -> int:
    """The number of decimal digits to which a call of `round` rounds."""
    digits = expr.args[1] if len(expr.args) > 1 else Literal(0, Type.INT)
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    return digits.value


def remainder_is_number(a: Interval, b: Interval) -> Mask:
    """The places where mod(a, b) is a, since a is smaller than b."""
    return a.magnitude < np.minimum(np.abs(b.lo), np.abs(b.hi)) * ((b.lo > 0) | (b.hi < 0))


def remainder(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """MOD: a number smaller than its divisor stays what it is; otherwise only the range is known."""
    a, b = args
    varies = a.varies or b.varies
    if b.varies:
        nulls.add(b.value.holds(0.0), expr, "may divide by zero")
    # At most as large as either operand, with the sign of the first.
    most = np.minimum(a.value.magnitude, b.value.magnitude)
    limited = Interval(np.where(a.value.lo < 0, -most, 0.0), np.where(a.value.hi > 0, most, 0.0))
    same = remainder_is_number(a.value, b.value)
    value = iv.where(same, a.value, limited)
    if not varies:
        return Derivatives(value)
    return Derivatives(value, iv.where(same, a.first, WHOLE), iv.where(same, a.second, WHOLE), True)


def computed(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """A function of text or time: at most its range is known."""
    varies = any(a.varies for a in args)
    if varies:
        nulls.add(np.ones((), np.bool_), expr, "is a function of which nothing is proved", REWRITE)
    return Derivatives(iv.span(*FUNCTIONS[expr.op].between), WHOLE, WHOLE, varies)


def coalesce(_: Call, args: tuple[Derivatives, ...], _nulls: PossibleNulls) -> Derivatives:
    """COALESCE: the first argument if it is never NULL. Otherwise the other columns decide which argument is
    chosen, as in a CASE.
    """
    first = next((i for i, a in enumerate(args) if a.never_null), len(args) - 1)
    chosen = args[: first + 1]
    return Derivatives(
        iv.hull(*(a.value for a in chosen)),
        iv.hull(*(a.first for a in chosen)),
        iv.hull(*(a.second for a in chosen)),
        any(a.varies for a in args),
    )


def bits(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """An operator of bits. `~x` is -1 - x; of the others at most the range is known."""
    if expr.op == "~":
        (a,) = args
        value = iv.add(_MINUS_ONE, iv.neg(a.value))
        return Derivatives(value, iv.neg(a.first), iv.neg(a.second), a.varies)
    out = computed(expr, args, nulls)
    return Derivatives(_range(expr.op, *(a.value for a in args)), out.first, out.second, out.varies)


def _range(op: str, a: Interval, b: Interval) -> Interval:
    """All values of the operator that aren't NULL."""
    if op == "<<":
        return iv.span(0.0, _INT64)
    if op == ">>":
        return Interval(np.minimum(a.lo, 0.0), np.maximum(a.hi, 0.0))
    positive = (a.lo >= 0) & (b.lo >= 0)
    if op == "&":
        # Not above an operand that isn't negative; of two negative numbers, below both.
        one = (a.lo >= 0) | (b.lo >= 0)
        most = np.where(a.lo >= 0, a.hi, np.where(b.lo >= 0, b.hi, np.maximum(a.hi, b.hi)))
        return Interval(np.where(one, 0.0, -_INT64), np.where(positive, np.minimum(a.hi, b.hi), most))
    # At most the sum, where no operand is negative.
    whole = iv.span(-_INT64, _INT64)
    return iv.where(positive, Interval(np.zeros_like(a.lo), iv.add(a, b).hi), whole)

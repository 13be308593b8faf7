"""Exact values of MOD and of the functions that round a number.

`floor`, `ceil`, `trunc`, `sign`, `mod`, `round` to whole numbers and the CASTs to integers have their exact
meaning. `round` with digits is by definition the computed function, whose results are DOUBLEs: 0.3 and not
3/10. Of a number that is no DOUBLE, it rounds the nearest DOUBLE.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from tamis.expressions.exact.arithmetic import UNKNOWN, Number, ball, union
from tamis.expressions.nodes import STEPS, Call, Literal
from tamis.expressions.vectorized.steps import rounded

OPERATORS = (*STEPS, "mod")

_LIMITS = {"to_int": 2**31, "to_bigint": 2**63}


def operation(expr: Call, args: list[Number]) -> Number:
    """An operator of `OPERATORS`, of arguments that are neither NULL nor UNKNOWN."""
    a = args[0]
    assert isinstance(a, (fmpq, arb))
    if expr.op == "mod":
        return _remainder(a, args[1])
    if isinstance(a, fmpq):
        return _step(expr, a)
    # The functions never fall: their values at the ends of a ball enclose all others.
    ends: list[Number] = [_step(expr, end.fmpq()) for end in (a.lower(), a.upper())]
    if any(end is None for end in ends):
        return None if all(end is None for end in ends) and bool(abs(a) > 1) else UNKNOWN
    return union(ends)


def _step(expr: Call, a: fmpq) -> fmpq | None:
    value = Fraction(int(a.p), int(a.q))
    match expr.op:
        case "floor":
            return fmpq(math.floor(value))
        case "ceil":
            return fmpq(math.ceil(value))
        case "trunc":
            return fmpq(math.trunc(value))
        case "sign":
            return fmpq((value > 0) - (value < 0))
        case "round":
            return _rounded(value, expr)
    whole = round(value)  # a half to the even number
    limit = _LIMITS[expr.op]
    return fmpq(whole) if -limit <= whole < limit else None


def _rounded(value: Fraction, expr: Call) -> fmpq:
    if len(expr.args) == 1:
        size = math.floor(abs(value) + Fraction(1, 2))
        return fmpq(size if value > 0 else -size)
    digits = expr.args[1]
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    with np.errstate(all="ignore"):
        found = rounded(np.array([float(value)]), digits.value)
    return fmpq(*float(found[0]).as_integer_ratio())


def _remainder(a: fmpq | arb, b: Number) -> Number:
    assert isinstance(b, (fmpq, arb))
    if isinstance(b, fmpq) and b == 0:
        return None
    if isinstance(a, fmpq) and isinstance(b, fmpq):
        return a - b * math.trunc(Fraction(int((a / b).p), int((a / b).q)))
    divisor = ball(b)
    if divisor.contains(0):
        return UNKNOWN
    quotient = ball(a) / divisor
    if not quotient.is_finite():
        return UNKNOWN
    low, high = (
        math.trunc(Fraction(int(q.p), int(q.q))) for q in (quotient.lower().fmpq(), quotient.upper().fmpq())
    )
    return ball(a) - divisor * low if low == high else UNKNOWN

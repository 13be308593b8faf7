"""Exact arithmetic on numbers: rational where the operations are, else enclosed by balls of Arb.

`+ - * /` and integer powers of rational numbers are rational. Other powers and the functions of the C library
are enclosed by balls (real intervals by midpoint and radius) at the precision of flint's context. A result
that is NULL when it is computed with DOUBLEs or integers is NULL here, too: beyond the greatest DOUBLE,
beyond 64 bits, and outside of the domain of an operation.

`floor`, `ceil`, `trunc`, `sign`, `mod`, `round` to whole numbers and the CASTs to integers have their exact
meaning. `round` with digits is by definition the computed function, whose results are DOUBLEs: 0.3 and not
3/10. Of a number that is no DOUBLE, it rounds the nearest DOUBLE.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, fmpq

from tamis.expressions.functions.entry import FUNCTIONS, RealFunction
from tamis.expressions.functions.rounding import rounded
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.vectors import Value

_GREATEST_DOUBLE = sys.float_info.max
_OVERFLOW = fmpq(2**1024 - 2**970)  # from here on, half a unit above the greatest DOUBLE, rounding overflows
_INT64 = 2**63
_MOST_POWER = 64  # larger exponents are not multiplied out, since the fraction would become too long
_MOST_EXPONENT = 1e6  # e to a larger power overflows every DOUBLE by far


class Unknown:
    """A number of which nothing is known; it may be NULL."""


UNKNOWN = Unknown()
Number: TypeAlias = "fmpq | arb | str | Unknown | None"
"""A number, a string, or None for NULL."""


def number_of(value: Value) -> Number:
    """The exact number of a value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return fmpq(*value.as_integer_ratio()) if math.isfinite(value) else None
    return fmpq(int(value))


def ball(value: Number) -> arb:
    """A ball around a rational number; a ball as it is."""
    if isinstance(value, fmpq):
        return arb(value.p) / arb(value.q)
    assert isinstance(value, arb)
    return value


def within_type(value: Number, type_: Type) -> Number:
    """`value` if it is in the range of its type, else NULL; UNKNOWN if its ball doesn't tell."""
    if isinstance(value, fmpq):
        if type_.integral:
            return value if -_INT64 <= value < _INT64 else None
        return value if abs(value) < _OVERFLOW else None
    if isinstance(value, arb):
        if not value.is_finite():
            return UNKNOWN
        if bool(abs(value) < _GREATEST_DOUBLE):
            return value
        return None if bool(abs(value) > arb(_OVERFLOW.p)) else UNKNOWN
    return value


def first_given(args: list[Number]) -> Number:
    """COALESCE: the first argument that isn't NULL."""
    return next((arg for arg in args if arg is not None), None)


def union(values: list[Number]) -> Number:
    """The least ball around several numbers, of which any may be the right one."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values[1:]):
        return first
    if not all(isinstance(value, (fmpq, arb)) for value in values):
        return UNKNOWN
    around = ball(first)
    for value in values[1:]:
        around = around.union(ball(value))
    return around


def extreme(op: str, args: list[Number]) -> Number:
    """LEAST or GREATEST, which skip NULLs."""
    given = [arg for arg in args if arg is not None]
    if any(isinstance(arg, Unknown) for arg in given):
        return UNKNOWN
    if not given:
        return None
    if all(isinstance(arg, fmpq) for arg in given):
        return (min if op == "least" else max)(given)  # type: ignore[type-var]
    best = ball(given[0])
    for arg in given[1:]:
        best = best.min(ball(arg)) if op == "least" else best.max(ball(arg))
    return best


def operation(expr: Call, args: list[Number]) -> Number:
    """An operator of numbers, of arguments that are neither NULL nor UNKNOWN."""
    a = args[0]
    assert isinstance(a, (fmpq, arb))
    function = FUNCTIONS[expr.op]
    if function.steps is not None:
        return _step(expr, a)
    if function.real is not None:
        return _real(function.real, a)
    match expr.op:
        case "neg":
            return -a
        case "abs":
            return a if bool(a >= 0) else -a if bool(a <= 0) else abs(ball(a))
        case "power":
            return _power(a, args[1])
        case "mod":
            return _remainder(a, args[1])
    if expr.op not in ("+", "-", "*", "/"):
        return UNKNOWN  # its entry has no rules for proofs
    b = args[1]
    assert isinstance(b, (fmpq, arb))
    if isinstance(a, arb) or isinstance(b, arb):
        a, b = ball(a), ball(b)
    match expr.op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            if isinstance(b, fmpq):
                return a / b if b != 0 else None
            return a / b if not b.contains(0) else None if b == 0 else UNKNOWN
    raise AssertionError(expr.op)


def _real(rules: RealFunction, a: fmpq | arb) -> Number:
    """A function of one number that never falls, enclosed by the rule of its entry."""
    if rules.scalar is math.sqrt and isinstance(a, fmpq) and a >= 0:
        top, bottom = math.isqrt(int(a.p)), math.isqrt(int(a.q))
        if top * top == a.p and bottom * bottom == a.q:
            return fmpq(top, bottom)
    argument = ball(a)
    inside = argument >= rules.least if rules.closed else argument > rules.least
    if not bool(inside):
        outside = argument < rules.least if rules.closed else argument <= rules.least
        return None if bool(outside) else UNKNOWN
    if bool(argument > _MOST_EXPONENT) and _overflows(rules):
        return None
    enclosed: arb = rules.ball(argument)
    return enclosed


def _overflows(rules: RealFunction) -> bool:
    try:
        rules.scalar(_MOST_EXPONENT)
    except OverflowError:
        return True
    return False


def _power(a: fmpq | arb, b: Number) -> Number:
    if isinstance(b, fmpq) and b.q == 1 and abs(b) <= _MOST_POWER:
        n = int(b.p)
        if n >= 0:
            return a**n
        if isinstance(a, fmpq):
            return a**n if a != 0 else None
        return a**n if not a.contains(0) else UNKNOWN
    base, exponent = ball(a), ball(b)
    if bool(base > 0):
        product = base.log() * exponent
        return product.exp() if bool(abs(product) < _MOST_EXPONENT) else UNKNOWN
    if isinstance(a, fmpq) and isinstance(b, fmpq):
        if a == 0:
            return fmpq(0) if b > 0 else None
        if b.q != 1:
            return None
    return UNKNOWN


def _step(expr: Call, a: fmpq | arb) -> Number:
    if isinstance(a, fmpq):
        return _step_of_rational(expr, a)
    # The functions never fall: their values at the ends of a ball enclose all others.
    ends: list[Number] = [_step_of_rational(expr, end.fmpq()) for end in (a.lower(), a.upper())]
    if any(end is None for end in ends):
        return None if all(end is None for end in ends) and bool(abs(a) > 1) else UNKNOWN
    return union(ends)


def _step_of_rational(expr: Call, a: fmpq) -> fmpq | None:
    value = Fraction(int(a.p), int(a.q))
    if len(expr.args) > 1:
        return _to_digits(value, expr.args[1])
    steps = FUNCTIONS[expr.op].steps
    assert steps is not None
    whole = steps.exact(value)
    return fmpq(whole) if steps.limit is None or -steps.limit <= whole < steps.limit else None


def _to_digits(value: Fraction, digits: Expr) -> fmpq:
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    with np.errstate(all="ignore"):
        nearest = rounded(np.array([float(value)]), digits.value)
    return fmpq(*float(nearest[0]).as_integer_ratio())


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

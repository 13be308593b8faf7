"""Exact arithmetic on numbers: rational where the operations are, else enclosed by balls of Arb.

`+ - * /` and integer powers of rational numbers are rational. `exp`, `ln`, `log10`, `sqrt` and other powers
are enclosed by balls (real intervals by midpoint and radius) at the precision of flint's context. A result
that is NULL when it is computed with DOUBLEs or integers is NULL here, too: beyond the greatest DOUBLE,
beyond 64 bits, and outside of the domain of an operation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TypeAlias

from flint import arb, fmpq

from tamis.expressions.nodes import Call, Type
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
    """An arithmetic operator of arguments that are neither NULL nor UNKNOWN."""
    a = args[0]
    assert isinstance(a, (fmpq, arb))
    match expr.op:
        case "neg":
            return -a
        case "abs":
            return a if bool(a >= 0) else -a if bool(a <= 0) else abs(ball(a))
        case "power":
            return _power(a, args[1])
        case "exp" | "ln" | "log10" | "sqrt":
            return _function(expr.op, a)
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


_FUNCTIONS: dict[str, Callable[[arb], arb]] = {"ln": arb.log, "sqrt": arb.sqrt}


def _function(op: str, a: fmpq | arb) -> Number:
    if op == "sqrt" and isinstance(a, fmpq):
        if a < 0:
            return None
        top, bottom = math.isqrt(int(a.p)), math.isqrt(int(a.q))
        if top * top == a.p and bottom * bottom == a.q:
            return fmpq(top, bottom)
    argument = ball(a)
    if op == "exp":
        if bool(abs(argument) < _MOST_EXPONENT):
            return argument.exp()
        return None if bool(argument > _MOST_EXPONENT) else UNKNOWN
    inside = argument >= 0 if op == "sqrt" else argument > 0
    if not bool(inside):
        outside = argument < 0 if op == "sqrt" else argument <= 0
        return None if bool(outside) else UNKNOWN
    if op == "log10":
        return argument.log() / arb(10).log()
    return _FUNCTIONS[op](argument)


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

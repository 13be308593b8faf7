"""Rules of differentiation: the interval derivatives of each operator from those of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import Derivatives, PossibleNulls
from tamis.certificates.interval_arithmetic.intervals import (
    MAX,
    UNIT,
    WHOLE,
    ZERO,
    Interval,
)
from tamis.certificates.interval_arithmetic.step_derivatives import bits, coalesce, computed, remainder, step
from tamis.expressions import python_functions
from tamis.expressions.functions.bits import OPERATORS as BITS
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import OPAQUE, Call, Column, Expr, Literal, Type, name_operators

INT64 = 2.0**63
# left - right in exact numbers: a comparison tests its sign. No evaluator computes it, so that it can't
# overflow.
DIFFERENCE = "difference"
name_operators(DIFFERENCE)

_Rule: TypeAlias = Callable[[Call, tuple[Derivatives, ...], PossibleNulls], Derivatives]


def combine(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """The interval derivatives of an operator from those of its arguments."""
    rule = _rule(expr)
    if rule is None:
        return Derivatives(WHOLE, WHOLE, WHOLE, any(a.varies for a in args))
    with np.errstate(all="ignore"):
        out = rule(expr, args, nulls)
    if not out.varies:
        limit = INT64 if expr.type.integral else MAX
        return Derivatives(iv.clipped(out.value, -limit, limit))
    return replace(out, never_null=all(a.never_null for a in args))


def _checked(expr: Call, value: Interval, varies: bool, nulls: PossibleNulls) -> Interval:
    """`value`, recorded as possibly NULL where it may be more than its type holds."""
    if varies and expr.type.integral:
        nulls.add((value.lo < -INT64) | (value.hi >= INT64), expr, "may exceed 64 bits")
    elif varies:
        nulls.add((value.lo < -MAX) | (value.hi > MAX), expr, "may overflow")
    return value


def _sum_rule(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    a, b = args
    if expr.op != "+":
        b = Derivatives(iv.neg(b.value), iv.neg(b.first), iv.neg(b.second), b.varies)
    varies = a.varies or b.varies
    value = iv.add(a.value, b.value)
    if expr.op != DIFFERENCE:
        if not expr.type.integral:
            # Rounding to nearest is monotone: where the ends stay finite, so does every computed sum.
            lo, hi = a.value.lo + b.value.lo, a.value.hi + b.value.hi
            value = Interval(
                np.where(np.isfinite(lo), np.maximum(value.lo, -MAX), value.lo),
                np.where(np.isfinite(hi), np.minimum(value.hi, MAX), value.hi),
            )
        _checked(expr, value, varies, nulls)
    if not a.varies or not b.varies:
        return Derivatives(value, (a if a.varies else b).first, (a if a.varies else b).second, varies)
    return Derivatives(value, iv.add(a.first, b.first), iv.add(a.second, b.second), True)


def _multiplied(a: Derivatives, b: Derivatives, value: Interval) -> Derivatives:
    if not a.varies or not b.varies:
        fixed, moving = (a, b) if not a.varies else (b, a)
        if not moving.varies:
            return Derivatives(value)
        return Derivatives(value, iv.mul(moving.first, fixed.value), iv.mul(moving.second, fixed.value), True)
    first = iv.add(iv.mul(a.first, b.value), iv.mul(a.value, b.first))
    cross = iv.mul(iv.TWO, iv.mul(a.first, b.first))
    second = iv.add(iv.add(iv.mul(a.second, b.value), iv.mul(a.value, b.second)), cross)
    return Derivatives(value, first, second, True)


def _product(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    a, b = args
    value = iv.square(a.value) if expr.args[0] == expr.args[1] else iv.mul(a.value, b.value)
    return _multiplied(a, b, _checked(expr, value, a.varies or b.varies, nulls))


def _quotient(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    a, b = args
    if not b.varies and expr.args[1].type.integral:
        # A whole divisor has a size of 1 at least, or it is 0, and the result is NULL for every value of the
        # variable.
        b = Derivatives(_whole(b.value))
        inverse = Derivatives(iv.recip(b.value))
    else:
        if a.varies or b.varies:
            nulls.add(b.value.holds(0.0), expr, "may divide by zero")
        inverse = _unary(b, iv.recip(b.value), _inverse_first(b.value), _inverse_second(b.value))
    value = _checked(expr, iv.div(a.value, b.value), a.varies or b.varies, nulls)
    return _multiplied(a, inverse, value)


def _whole(divisor: Interval) -> Interval:
    """A whole divisor: the numbers nearer to 0 than 1 are removed where its sign is known."""
    above = Interval(np.maximum(divisor.lo, 1.0), np.maximum(divisor.hi, 1.0))
    below = Interval(np.minimum(divisor.lo, -1.0), np.minimum(divisor.hi, -1.0))
    return iv.where(divisor.lo >= 0, above, iv.where(divisor.hi <= 0, below, divisor))


def _inverse_first(b: Interval) -> Interval:
    return iv.neg(iv.recip(iv.square(b)))


def _inverse_second(b: Interval) -> Interval:
    return iv.mul(iv.TWO, iv.recip(iv.power_int(b, 3)))


def _unary(a: Derivatives, value: Interval, first: Interval, second: Interval) -> Derivatives:
    """The derivatives of u(a) by the chain rule, from enclosures of u, u' and u'' over the values of a."""
    if not a.varies:
        return Derivatives(value)
    return Derivatives(
        value,
        iv.mul(first, a.first),
        iv.add(iv.mul(second, iv.square(a.first)), iv.mul(first, a.second)),
        True,
    )


def _neg(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    (a,) = args
    value = _checked(expr, iv.neg(a.value), a.varies, nulls)
    return Derivatives(value, iv.neg(a.first), iv.neg(a.second), a.varies)


def _abs(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    (a,) = args
    value = _checked(expr, iv.absolute(a.value), a.varies, nulls)
    if not a.varies:
        return Derivatives(value)
    below, above = a.value.hi <= 0, a.value.lo >= 0
    first = iv.where(above, a.first, iv.where(below, iv.neg(a.first), iv.mul(UNIT, a.first)))
    # ABS bends where its argument is 0. A box may end there, and straight lines on both sides must not hide
    # the bend.
    bend = a.value.holds(0.0)
    second = iv.where(bend, WHOLE, iv.where(above, a.second, iv.neg(a.second)))
    return Derivatives(value, first, second, True)


def _real(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """A function of one number that never falls, by the rules of its entry in the table of functions."""
    (a,) = args
    rules = FUNCTIONS[expr.op].real
    assert rules is not None
    if a.varies and rules.undefined:
        outside = a.value.lo < rules.least if rules.closed else a.value.lo <= rules.least
        nulls.add(outside, expr, rules.undefined)
    value = _checked(expr, iv.of_real(rules, a.value), a.varies, nulls)
    if not a.varies:
        return Derivatives(value)
    given: dict[Expr, Interval] = {_X: a.value, _Y: value}
    return _unary(a, value, _enclosed(rules.slope(_X, _Y), given), _enclosed(rules.bend(_X, _Y), given))


_X, _Y = Column("", "x", Type.DOUBLE), Column("", "y", Type.DOUBLE)


def _enclosed(expr: Expr, given: Mapping[Expr, Interval]) -> Interval:
    """The values of a derivative; 0 in a divisor is a limit, since the function has a value there."""
    if isinstance(expr, Column):
        return given[expr]
    if isinstance(expr, Literal):
        assert isinstance(expr.value, float)
        return iv.point(expr.value)
    args = tuple(_enclosed(arg, given) for arg in expr.args)
    if expr.op == "/":
        numerator = expr.args[0]
        if isinstance(numerator, Literal) and numerator.value in (1.0, -1.0):
            inverse = iv.recip(args[1])
            return inverse if numerator.value == 1.0 else iv.neg(inverse)
        return iv.div(*args)
    if expr.op == "*" and expr.args[0] == expr.args[1]:
        return iv.square(args[0])
    rule = _rule(expr)
    assert rule is not None, "a derivative has no conditions"
    return rule(expr, tuple(map(Derivatives, args)), PossibleNulls()).value


def whole_exponent(expr: Call) -> int | None:
    """The exponent of a power, if it is a whole constant of at most 64."""
    exponent = expr.args[1]
    sign = 1
    if isinstance(exponent, Call) and exponent.op == "neg":
        sign, exponent = -1, exponent.args[0]
    if not isinstance(exponent, Literal) or isinstance(exponent.value, (bool, str)) or exponent.value is None:
        return None
    value = float(exponent.value)
    return sign * int(value) if value == math.floor(value) and abs(value) <= 64 else None


def _power(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    base, exponent = args
    n = whole_exponent(expr)
    varies = base.varies or exponent.varies
    if n is not None:
        if n < 0 and varies:
            nulls.add(base.value.holds(0.0), expr, "may divide by zero")
        value = _checked(expr, iv.power_int(base.value, n), varies, nulls)
        first = ZERO if n == 0 else iv.mul(iv.point(float(n)), iv.power_int(base.value, n - 1))
        second = (
            ZERO if n in (0, 1) else iv.mul(iv.point(float(n * (n - 1))), iv.power_int(base.value, n - 2))
        )
        return _unary(base, value, first, second)
    value = iv.power(base.value, exponent.value)
    if not varies:
        return Derivatives(iv.where(base.value.lo >= 0, value, WHOLE))
    zero = (base.value.lo == 0) & ((exponent.value.lo <= 0) | np.bool_(exponent.varies))
    nulls.add(base.value.lo < 0, expr, "may be the power of a negative number")
    nulls.add(zero, expr, "may be a power of 0")
    _checked(expr, value, varies, nulls)
    logarithm = _unary(base, iv.ln(base.value), iv.recip(base.value), _inverse_first(base.value))
    product = _multiplied(exponent, logarithm, iv.mul(exponent.value, logarithm.value))
    out = _unary(product, value, value, value)
    at_zero = base.value.lo <= 0
    return Derivatives(value, iv.where(at_zero, WHOLE, out.first), iv.where(at_zero, WHOLE, out.second), True)


def _extreme(expr: Call, args: tuple[Derivatives, ...], _nulls: PossibleNulls) -> Derivatives:
    """LEAST or GREATEST. A NULL argument is skipped, so that only arguments that are never NULL limit the
    result.
    """
    value = iv.hull(*(a.value for a in args))
    for a in args:
        if a.never_null and expr.op == "greatest":
            value = Interval(np.maximum(value.lo, a.value.lo), value.hi)
        elif a.never_null:
            value = Interval(value.lo, np.minimum(value.hi, a.value.hi))
    if not any(a.varies for a in args):
        return Derivatives(value)
    # With equal slopes everywhere the arguments differ by what the variable does not change: nothing bends.
    first = iv.hull(*(a.first for a in args))
    straight = first.lo == first.hi
    for a in args:
        straight = straight & (a.second.lo == 0) & (a.second.hi == 0)
    return Derivatives(value, first, iv.where(straight, ZERO, WHOLE), True)


def _opaque(expr: Call, args: tuple[Derivatives, ...], _nulls: PossibleNulls) -> Derivatives:
    """A Python function: it has a value, and its slope has the declared sign; nothing else is known."""
    value = iv.span(-python_functions.MOST, python_functions.MOST)
    first = ZERO
    for shape, a in zip(python_functions.shapes_of(expr), args[2:], strict=True):
        slope = {python_functions.INCREASING: _POSITIVE, python_functions.DECREASING: iv.neg(_POSITIVE)}.get(
            shape, WHOLE
        )
        if a.varies:
            first = iv.add(first, iv.mul(slope, a.first))
    return Derivatives(value, first, WHOLE, any(a.varies for a in args[2:]))


_POSITIVE = iv.span(0.0, math.inf)
_RULES: dict[str, _Rule] = {
    "+": _sum_rule,
    "-": _sum_rule,
    DIFFERENCE: _sum_rule,
    "*": _product,
    "/": _quotient,
    "neg": _neg,
    "abs": _abs,
    "power": _power,
    "least": _extreme,
    "greatest": _extreme,
    "mod": remainder,
    "coalesce": coalesce,
    **dict.fromkeys(BITS, bits),
    OPAQUE: _opaque,
}


def _rule(expr: Call) -> _Rule | None:
    """The rule of an operator; None for conditions and CASE, which are no numbers here."""
    if expr.op in _RULES:
        return _RULES[expr.op]
    function = FUNCTIONS[expr.op]
    if function.real is not None or function.steps is not None:
        return _real if function.real is not None else step
    number = expr.type is not Type.BOOLEAN and expr.op != "case"
    return computed if number or function.computed else None

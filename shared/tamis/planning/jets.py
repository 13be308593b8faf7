"""Value, first and second derivative of an expression over a box of its columns, enclosed by intervals.

Derivatives are by one column, the variable. A sub-expression in which the variable stands must have a value
for every value of its arguments, or `Undefined` is raised: what turns NULL in the middle of the variable's
domain breaks every proof about it. One without the variable may be NULL; what is said then holds for the
cases in which it isn't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tamis.expressions.nodes import Call, Column, Expr, Literal
from tamis.planning import intervals as iv
from tamis.planning.intervals import MAX, ONE, WHOLE, ZERO, Interval

Box = Mapping[Column, Interval]
INT64 = 2.0**63
# The result of comparing: left - right as exact numbers, which no evaluator computes and which can't
# overflow.
DIFFERENCE = "difference"


class UndefinedError(Exception):
    """A sub-expression in which the variable stands may be NULL: `why`, for a message."""

    def __init__(self, expr: Expr, why: str) -> None:
        self.expr, self.why = expr, why
        super().__init__(why)


@dataclass(frozen=True)
class Jet:
    """Enclosures of the value and its derivatives.

    `varies`: the variable stands in it. `sure`: it is never NULL, whatever the rest is.
    """

    value: Interval
    first: Interval = ZERO
    second: Interval = ZERO
    varies: bool = False
    sure: bool = False


def jet(expr: Expr, box: Box, variable: Column, *, strict: bool = False) -> Jet:
    """The jet of `expr` over `box`. With `strict` no sub-expression may be NULL, whatever stands in it."""
    if isinstance(expr, Column):
        varies = expr == variable
        return Jet(box.get(expr, WHOLE), ONE if varies else ZERO, ZERO, varies or strict, varies)
    if isinstance(expr, Literal):
        if strict and expr.value is None:
            raise UndefinedError(expr, "is NULL")
        return replace(literal(expr), varies=strict)
    if expr.op == "case":
        values = (*expr.args[1:-1:2], expr.args[-1])
        jets = tuple(jet(v, box, variable, strict=strict) for v in values if not is_null_literal(v))
        if strict and len(jets) < len(values):
            raise UndefinedError(expr, "may be NULL")
        return combine_case(expr, jets, variable)
    return combine(expr, tuple(jet(arg, box, variable, strict=strict) for arg in expr.args))


def is_null_literal(expr: Expr) -> bool:
    """Is it the constant NULL?"""
    return isinstance(expr, Literal) and expr.value is None


def literal(expr: Literal) -> Jet:
    """The jet of a constant; of NULL, and of what is no number, any value."""
    if isinstance(expr.value, (bool, str)) or expr.value is None:
        return Jet(WHOLE)
    value = float(expr.value)
    exact = not isinstance(expr.value, int) or int(value) == expr.value
    return Jet(iv.point(value) if exact else iv.widen(value, value), sure=True)


def combine_case(expr: Call, jets: tuple[Jet, ...], variable: Column) -> Jet:
    """A CASE: any of its values; where the variable decides which, it may jump."""
    if not jets:
        return Jet(WHOLE)
    jumps = any(_mentions(condition, variable) for condition in expr.args[:-1:2])
    return Jet(
        iv.hull(*(j.value for j in jets)),
        WHOLE if jumps else iv.hull(*(j.first for j in jets)),
        WHOLE if jumps else iv.hull(*(j.second for j in jets)),
        jumps or any(j.varies for j in jets),
    )


def _mentions(expr: Expr, variable: Column) -> bool:
    if isinstance(expr, Call):
        return any(_mentions(arg, variable) for arg in expr.args)
    return expr == variable


def combine(expr: Call, args: tuple[Jet, ...]) -> Jet:
    """The jet of an operator from those of its arguments."""
    rule = _RULES.get(expr.op)
    if rule is None:  # a condition: no number
        return Jet(WHOLE, WHOLE, WHOLE, any(a.varies for a in args))
    out = rule(expr, args)
    if not out.varies:
        limit = INT64 if expr.type.integral else MAX
        value = Interval(max(out.value.lo, -limit), min(out.value.hi, limit))
        return Jet(value if value.lo <= value.hi else Interval(-limit, limit))
    return replace(out, sure=all(a.sure for a in args))


def _checked(expr: Call, value: Interval, varies: bool) -> Interval:
    """`value`, or Undefined where it may be more than its type holds."""
    if not varies:
        return value
    if expr.type.integral:
        if value.lo < -INT64 or value.hi >= INT64:
            raise UndefinedError(expr, "may exceed 64 bits")
    elif value.lo < -MAX or value.hi > MAX:
        raise UndefinedError(expr, "may overflow")
    return value


def _sum(expr: Call, args: tuple[Jet, ...]) -> Jet:
    a, b = args
    if expr.op != "+":
        b = Jet(iv.neg(b.value), iv.neg(b.first), iv.neg(b.second), b.varies)
    varies = a.varies or b.varies
    value = iv.add(a.value, b.value)
    if (
        not expr.type.integral
        and math.isfinite(a.value.lo + b.value.lo)
        and math.isfinite(a.value.hi + b.value.hi)
    ):
        # Rounding to nearest is monotone: where the ends stay finite, so does every computed sum.
        value = Interval(max(value.lo, -MAX), min(value.hi, MAX))
    if expr.op != DIFFERENCE:
        _checked(expr, value, varies)
    return Jet(value, iv.add(a.first, b.first), iv.add(a.second, b.second), varies)


def _product(expr: Call, args: tuple[Jet, ...]) -> Jet:
    a, b = args
    varies = a.varies or b.varies
    same = expr.args[0] == expr.args[1]
    value = _checked(expr, iv.square(a.value) if same else iv.mul(a.value, b.value), varies)
    first = iv.add(iv.mul(a.first, b.value), iv.mul(a.value, b.first))
    cross = iv.mul(iv.point(2.0), iv.mul(a.first, b.first))
    second = iv.add(iv.add(iv.mul(a.second, b.value), iv.mul(a.value, b.second)), cross)
    return Jet(value, first, second, varies)


def _quotient(expr: Call, args: tuple[Jet, ...]) -> Jet:
    a, b = args
    varies = a.varies or b.varies
    if not b.varies and expr.args[1].type.integral:
        # A whole divisor is 0, and the result NULL for every value of the variable, or at least 1 in size.
        inverse = Jet(_whole_inverse(b.value))
    elif b.value.holds(0.0):
        if varies:
            raise UndefinedError(expr, "may divide by zero")
        return Jet(WHOLE)
    else:
        inverse = _unary(b, iv.recip(b.value), _inverse_first(b.value), _inverse_second(b.value))
    value = _checked(expr, iv.mul(a.value, inverse.value), varies)
    first = iv.add(iv.mul(a.first, inverse.value), iv.mul(a.value, inverse.first))
    cross = iv.mul(iv.point(2.0), iv.mul(a.first, inverse.first))
    second = iv.add(iv.add(iv.mul(a.second, inverse.value), iv.mul(a.value, inverse.second)), cross)
    return Jet(value, first, second, varies)


def _whole_inverse(divisor: Interval) -> Interval:
    if divisor.lo >= 0:
        return Interval(0.0 if divisor.hi > 2.0**53 else iv.recip(Interval(1, max(divisor.hi, 1))).lo, 1.0)
    if divisor.hi <= 0:
        return iv.neg(_whole_inverse(iv.neg(divisor)))
    return Interval(-1.0, 1.0)


def _inverse_first(b: Interval) -> Interval:
    return iv.neg(iv.recip(iv.square(b)))


def _inverse_second(b: Interval) -> Interval:
    return iv.mul(iv.point(2.0), iv.recip(iv.power_int(b, 3)))


def _unary(a: Jet, value: Interval, first: Interval, second: Interval) -> Jet:
    """The jet of u(a) from the enclosures of u, u' and u'' over a's values."""
    return Jet(
        value,
        iv.mul(first, a.first),
        iv.add(iv.mul(second, iv.square(a.first)), iv.mul(first, a.second)),
        a.varies,
    )


def _neg(expr: Call, args: tuple[Jet, ...]) -> Jet:
    (a,) = args
    value = _checked(expr, iv.neg(a.value), a.varies)
    return Jet(value, iv.neg(a.first), iv.neg(a.second), a.varies)


def _abs(expr: Call, args: tuple[Jet, ...]) -> Jet:
    (a,) = args
    if a.value.hi <= 0:
        return _neg(expr, args)
    if a.value.lo >= 0:
        return a
    value = _checked(expr, iv.absolute(a.value), a.varies)
    return Jet(value, iv.mul(Interval(-1.0, 1.0), a.first), WHOLE if a.varies else ZERO, a.varies)


def _sqrt(expr: Call, args: tuple[Jet, ...]) -> Jet:
    (a,) = args
    if a.varies and a.value.lo < 0:
        raise UndefinedError(expr, "may be the root of a negative number")
    value = iv.sqrt(a.value)
    if not a.varies:
        return Jet(value)
    first = iv.recip(iv.mul(iv.point(2.0), value))
    second = iv.neg(iv.recip(iv.mul(iv.point(4.0), iv.mul(value, a.value))))
    return _unary(a, value, first, second)


def _exp(expr: Call, args: tuple[Jet, ...]) -> Jet:
    (a,) = args
    value = _checked(expr, iv.exp(a.value), a.varies)
    return _unary(a, value, value, value)


def _ln(expr: Call, args: tuple[Jet, ...]) -> Jet:
    (a,) = args
    if a.varies and a.value.lo <= 0:
        raise UndefinedError(expr, "may be the logarithm of 0 or a negative number")
    scale = iv.recip(iv.LN10) if expr.op == "log10" else ONE
    value = iv.mul(iv.ln(a.value), scale)
    if not a.varies:
        return Jet(value)
    return _unary(a, value, iv.mul(scale, iv.recip(a.value)), iv.mul(scale, _inverse_first(a.value)))


def whole_exponent(expr: Call) -> int | None:
    """The exponent of a power where it is a whole constant of moderate size."""
    exponent = expr.args[1]
    sign = 1
    if isinstance(exponent, Call) and exponent.op == "neg":
        sign, exponent = -1, exponent.args[0]
    if not isinstance(exponent, Literal) or isinstance(exponent.value, (bool, str)) or exponent.value is None:
        return None
    value = float(exponent.value)
    return sign * int(value) if value == math.floor(value) and abs(value) <= 64 else None


def _power(expr: Call, args: tuple[Jet, ...]) -> Jet:
    base, exponent = args
    n = whole_exponent(expr)
    varies = base.varies or exponent.varies
    if n is not None:
        if n < 0 and base.value.holds(0.0):
            if varies:
                raise UndefinedError(expr, "may divide by zero")
            return Jet(WHOLE)
        value = _checked(expr, iv.power_int(base.value, n), varies)
        first = iv.mul(iv.point(float(n)), iv.power_int(base.value, n - 1)) if n != 0 and varies else ZERO
        if n == 1:
            first = ONE
        second = ZERO
        if n not in (0, 1) and varies:
            second = iv.mul(iv.point(float(n * (n - 1))), iv.power_int(base.value, n - 2))
        return _unary(base, value, first, second)
    if not varies:
        return Jet(iv.power(base.value, exponent.value) if base.value.lo >= 0 else WHOLE)
    if base.value.lo < 0:
        raise UndefinedError(expr, "may be the power of a negative number")
    if base.value.lo == 0:
        if exponent.value.lo <= 0 or exponent.varies:
            raise UndefinedError(expr, "may be a power of 0")
        value = _checked(expr, iv.power(base.value, exponent.value), varies)
        return Jet(value, WHOLE, WHOLE, True)
    logarithm = _unary(base, iv.ln(base.value), iv.recip(base.value), _inverse_first(base.value))
    product = Jet(
        iv.mul(exponent.value, logarithm.value),
        iv.add(iv.mul(exponent.first, logarithm.value), iv.mul(exponent.value, logarithm.first)),
        iv.add(
            iv.add(iv.mul(exponent.second, logarithm.value), iv.mul(exponent.value, logarithm.second)),
            iv.mul(iv.point(2.0), iv.mul(exponent.first, logarithm.first)),
        ),
        True,
    )
    value = _checked(expr, iv.power(base.value, exponent.value), varies)
    return _unary(product, value, value, value)


def _extreme(expr: Call, args: tuple[Jet, ...]) -> Jet:
    """least or greatest. An argument that may be NULL is skipped then, so that only sure ones limit the
    result.
    """
    sure = [a.value for a in args if a.sure]
    value = iv.hull(*(a.value for a in args))
    if expr.op == "greatest" and sure:
        value = Interval(max(s.lo for s in sure), value.hi)
    elif sure:
        value = Interval(value.lo, min(s.hi for s in sure))
    # Equal slopes everywhere: the arguments differ by what the variable does not change, and nothing bends.
    slopes = {a.first for a in args}
    alone = len(slopes) == 1 and min(slopes).width == 0 and all(a.second == ZERO for a in args)
    return Jet(
        value,
        iv.hull(*(a.first for a in args)),
        ZERO if alone else WHOLE,
        any(a.varies for a in args),
    )


_RULES: dict[str, Callable[[Call, tuple[Jet, ...]], Jet]] = {
    "+": _sum,
    "-": _sum,
    DIFFERENCE: _sum,
    "*": _product,
    "/": _quotient,
    "neg": _neg,
    "abs": _abs,
    "sqrt": _sqrt,
    "exp": _exp,
    "ln": _ln,
    "log10": _ln,
    "power": _power,
    "least": _extreme,
    "greatest": _extreme,
}

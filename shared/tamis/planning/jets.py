"""Value, first and second derivative of an expression over boxes of its columns, enclosed by intervals.

Derivatives are by one column, the variable. Many boxes are worked on at once: an interval is a pair of
arrays (see `intervals`). A sub-expression in which the variable stands must have a value for every value of
its arguments: what turns NULL in the middle of the variable's domain breaks every proof about it. Where
that is not shown, the box is marked in `Doubt`. One without the variable may be NULL; what is said then
holds for the cases in which it isn't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tamis.expressions import opaque
from tamis.expressions.nodes import OPAQUE, Call, Column, Expr, Literal, columns
from tamis.planning import intervals as iv
from tamis.planning.intervals import MAX, ONE, UNIT, WHOLE, ZERO, Interval, Mask

Box = Mapping[Column, Interval]
INT64 = 2.0**63
# left - right as exact numbers, which no evaluator computes and which can't overflow: what a comparison is
# about.
DIFFERENCE = "difference"


class UndefinedError(Exception):
    """A sub-expression in which the variable stands may be NULL: `why`, for a message."""

    def __init__(self, expr: Expr, why: str) -> None:
        self.expr, self.why = expr, why
        super().__init__(why)


@dataclass
class Doubt:
    """The boxes over which a part may be NULL, and the first part for which that is so."""

    boxes: Mask = field(default_factory=lambda: np.zeros((), np.bool_))
    error: UndefinedError | None = None

    def add(self, boxes: Mask, expr: Expr, why: str) -> None:
        """Mark `boxes`."""
        if np.any(boxes):
            self.boxes = self.boxes | boxes
            self.error = self.error or UndefinedError(expr, why)

    def check(self) -> None:
        """Raises the first UndefinedError, where there is any."""
        if self.error is not None:
            raise self.error


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


def jet(expr: Expr, box: Box, variable: Column, doubt: Doubt, *, strict: bool = False) -> Jet:
    """The jet of `expr` over `box`. With `strict` no part may be NULL, whether the variable stands in it or
    not.
    """
    if isinstance(expr, Column):
        varies = expr == variable
        return Jet(box.get(expr, WHOLE), ONE if varies else ZERO, ZERO, varies or strict, varies)
    if isinstance(expr, Literal):
        if strict and expr.value is None:
            doubt.add(np.ones((), np.bool_), expr, "is NULL")
        return replace(_literal(expr), varies=strict)
    if expr.op == "case":
        values = (*expr.args[1:-1:2], expr.args[-1])
        if jumps(expr, variable):
            strict = True
            if not alike(values, variable):
                doubt.add(np.ones((), np.bool_), expr, "may be NULL for some of its values alone")
        jets = tuple(jet(v, box, variable, doubt, strict=strict) for v in values if not is_null_literal(v))
        if strict and len(jets) < len(values):
            doubt.add(np.ones((), np.bool_), expr, "may be NULL")
        return combine_case(expr, jets, variable)
    args = tuple(jet(arg, box, variable, doubt, strict=strict) for arg in expr.args)
    return combine(expr, args, doubt)


def is_null_literal(expr: Expr) -> bool:
    """Is it the constant NULL?"""
    return isinstance(expr, Literal) and expr.value is None


def _literal(expr: Literal) -> Jet:
    """The jet of a constant; of NULL, and of what is no number, any value."""
    if isinstance(expr.value, (bool, str)) or expr.value is None:
        return Jet(WHOLE)
    value = float(expr.value)
    if int(value) == expr.value or isinstance(expr.value, float):
        return Jet(iv.point(value), sure=True)
    return Jet(iv.span(math.nextafter(value, -math.inf), math.nextafter(value, math.inf)), sure=True)


def combine_case(expr: Call, jets: tuple[Jet, ...], variable: Column) -> Jet:
    """A CASE: any of its values; where the variable decides which, it may jump."""
    if not jets:
        return Jet(WHOLE)
    torn = jumps(expr, variable)
    return Jet(
        iv.hull(*(j.value for j in jets)),
        WHOLE if torn else iv.hull(*(j.first for j in jets)),
        WHOLE if torn else iv.hull(*(j.second for j in jets)),
        torn or any(j.varies for j in jets),
    )


def jumps(expr: Call, variable: Column) -> bool:
    """Does the variable decide which value a CASE takes?"""
    return any(_mentions(condition, variable) for condition in expr.args[:-1:2])


def alike(values: tuple[Expr, ...], variable: Column) -> bool:
    """Are all of `values`, each of which has a value wherever its columns have, NULL for the same rest?

    Where the variable decides which of them counts, anything else would make NULL depend on the variable.
    """
    rests = {frozenset(c for c in columns(v) if c != variable) for v in values}
    skips = any(_mentions_op(v, ("least", "greatest", "case")) for v in values)
    return (
        len(rests) == 1
        and not any(is_null_literal(v) for v in values)
        and (not skips or rests == {frozenset()})
    )


def _mentions_op(expr: Expr, ops: tuple[str, ...]) -> bool:
    return isinstance(expr, Call) and (expr.op in ops or any(_mentions_op(arg, ops) for arg in expr.args))


def _mentions(expr: Expr, variable: Column) -> bool:
    if isinstance(expr, Call):
        return any(_mentions(arg, variable) for arg in expr.args)
    return expr == variable


def combine(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    """The jet of an operator from those of its arguments."""
    rule = _RULES.get(expr.op)
    if rule is None:  # a condition: no number
        return Jet(WHOLE, WHOLE, WHOLE, any(a.varies for a in args))
    with np.errstate(all="ignore"):
        out = rule(expr, args, doubt)
    if not out.varies:
        limit = INT64 if expr.type.integral else MAX
        return Jet(iv.clipped(out.value, -limit, limit))
    return replace(out, sure=all(a.sure for a in args))


def _checked(expr: Call, value: Interval, varies: bool, doubt: Doubt) -> Interval:
    """`value`, doubted where it may be more than its type holds."""
    if varies and expr.type.integral:
        doubt.add((value.lo < -INT64) | (value.hi >= INT64), expr, "may exceed 64 bits")
    elif varies:
        doubt.add((value.lo < -MAX) | (value.hi > MAX), expr, "may overflow")
    return value


def _sum(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    a, b = args
    if expr.op != "+":
        b = Jet(iv.neg(b.value), iv.neg(b.first), iv.neg(b.second), b.varies)
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
        _checked(expr, value, varies, doubt)
    if not a.varies or not b.varies:
        return Jet(value, (a if a.varies else b).first, (a if a.varies else b).second, varies)
    return Jet(value, iv.add(a.first, b.first), iv.add(a.second, b.second), True)


def _multiplied(a: Jet, b: Jet, value: Interval) -> Jet:
    if not a.varies or not b.varies:
        fixed, moving = (a, b) if not a.varies else (b, a)
        if not moving.varies:
            return Jet(value)
        return Jet(value, iv.mul(moving.first, fixed.value), iv.mul(moving.second, fixed.value), True)
    first = iv.add(iv.mul(a.first, b.value), iv.mul(a.value, b.first))
    cross = iv.mul(iv.TWO, iv.mul(a.first, b.first))
    second = iv.add(iv.add(iv.mul(a.second, b.value), iv.mul(a.value, b.second)), cross)
    return Jet(value, first, second, True)


def _product(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    a, b = args
    value = iv.square(a.value) if expr.args[0] == expr.args[1] else iv.mul(a.value, b.value)
    return _multiplied(a, b, _checked(expr, value, a.varies or b.varies, doubt))


def _quotient(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    a, b = args
    if not b.varies and expr.args[1].type.integral:
        # A whole divisor is 0, and the result NULL for every value of the variable, or at least 1 in size.
        b = Jet(_whole(b.value))
        inverse = Jet(iv.recip(b.value))
    else:
        if a.varies or b.varies:
            doubt.add(b.value.holds(0.0), expr, "may divide by zero")
        inverse = _unary(b, iv.recip(b.value), _inverse_first(b.value), _inverse_second(b.value))
    value = _checked(expr, iv.div(a.value, b.value), a.varies or b.varies, doubt)
    return _multiplied(a, inverse, value)


def _whole(divisor: Interval) -> Interval:
    """Without what is nearer to 0 than 1, where one sign remains."""
    above = Interval(np.maximum(divisor.lo, 1.0), np.maximum(divisor.hi, 1.0))
    below = Interval(np.minimum(divisor.lo, -1.0), np.minimum(divisor.hi, -1.0))
    return iv.where(divisor.lo >= 0, above, iv.where(divisor.hi <= 0, below, divisor))


def _inverse_first(b: Interval) -> Interval:
    return iv.neg(iv.recip(iv.square(b)))


def _inverse_second(b: Interval) -> Interval:
    return iv.mul(iv.TWO, iv.recip(iv.power_int(b, 3)))


def _unary(a: Jet, value: Interval, first: Interval, second: Interval) -> Jet:
    """The jet of u(a) from the enclosures of u, u' and u'' over a's values."""
    if not a.varies:
        return Jet(value)
    return Jet(
        value,
        iv.mul(first, a.first),
        iv.add(iv.mul(second, iv.square(a.first)), iv.mul(first, a.second)),
        True,
    )


def _neg(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    (a,) = args
    value = _checked(expr, iv.neg(a.value), a.varies, doubt)
    return Jet(value, iv.neg(a.first), iv.neg(a.second), a.varies)


def _abs(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    (a,) = args
    value = _checked(expr, iv.absolute(a.value), a.varies, doubt)
    if not a.varies:
        return Jet(value)
    below, above = a.value.hi <= 0, a.value.lo >= 0
    first = iv.where(above, a.first, iv.where(below, iv.neg(a.first), iv.mul(UNIT, a.first)))
    # A box may end where the argument is 0: there is a bend, which two boxes with straight lines must not
    # hide.
    bend = a.value.holds(0.0)
    second = iv.where(bend, WHOLE, iv.where(above, a.second, iv.neg(a.second)))
    return Jet(value, first, second, True)


def _sqrt(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    (a,) = args
    value = iv.sqrt(a.value)
    if a.varies:
        doubt.add(a.value.lo < 0, expr, "may be the root of a negative number")
    first = iv.recip(iv.mul(iv.TWO, value))
    second = iv.neg(iv.recip(iv.mul(iv.point(4.0), iv.mul(value, a.value))))
    return _unary(a, value, first, second)


def _exp(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    (a,) = args
    value = _checked(expr, iv.exp(a.value), a.varies, doubt)
    return _unary(a, value, value, value)


def _ln(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    (a,) = args
    if a.varies:
        doubt.add(a.value.lo <= 0, expr, "may be the logarithm of 0 or a negative number")
    scale = iv.INVERSE_LN10 if expr.op == "log10" else ONE
    value = iv.mul(iv.ln(a.value), scale)
    first, second = iv.recip(a.value), _inverse_first(a.value)
    return _unary(a, value, iv.mul(scale, first), iv.mul(scale, second))


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


def _power(expr: Call, args: tuple[Jet, ...], doubt: Doubt) -> Jet:
    base, exponent = args
    n = whole_exponent(expr)
    varies = base.varies or exponent.varies
    if n is not None:
        if n < 0 and varies:
            doubt.add(base.value.holds(0.0), expr, "may divide by zero")
        value = _checked(expr, iv.power_int(base.value, n), varies, doubt)
        first = ZERO if n == 0 else iv.mul(iv.point(float(n)), iv.power_int(base.value, n - 1))
        second = (
            ZERO if n in (0, 1) else iv.mul(iv.point(float(n * (n - 1))), iv.power_int(base.value, n - 2))
        )
        return _unary(base, value, first, second)
    value = iv.power(base.value, exponent.value)
    if not varies:
        return Jet(iv.where(base.value.lo >= 0, value, WHOLE))
    zero = (base.value.lo == 0) & ((exponent.value.lo <= 0) | np.bool_(exponent.varies))
    doubt.add(base.value.lo < 0, expr, "may be the power of a negative number")
    doubt.add(zero, expr, "may be a power of 0")
    _checked(expr, value, varies, doubt)
    logarithm = _unary(base, iv.ln(base.value), iv.recip(base.value), _inverse_first(base.value))
    product = _multiplied(exponent, logarithm, iv.mul(exponent.value, logarithm.value))
    out = _unary(product, value, value, value)
    at_zero = base.value.lo <= 0
    return Jet(value, iv.where(at_zero, WHOLE, out.first), iv.where(at_zero, WHOLE, out.second), True)


def _extreme(expr: Call, args: tuple[Jet, ...], _doubt: Doubt) -> Jet:
    """least or greatest. An argument that may be NULL is skipped then, so that only sure ones limit the
    result.
    """
    value = iv.hull(*(a.value for a in args))
    for a in args:
        if a.sure and expr.op == "greatest":
            value = Interval(np.maximum(value.lo, a.value.lo), value.hi)
        elif a.sure:
            value = Interval(value.lo, np.minimum(value.hi, a.value.hi))
    if not any(a.varies for a in args):
        return Jet(value)
    # Equal slopes everywhere: the arguments differ by what the variable does not change, and nothing bends.
    first = iv.hull(*(a.first for a in args))
    straight = first.lo == first.hi
    for a in args:
        straight = straight & (a.second.lo == 0) & (a.second.hi == 0)
    return Jet(value, first, iv.where(straight, ZERO, WHOLE), True)


def _opaque(expr: Call, args: tuple[Jet, ...], _doubt: Doubt) -> Jet:
    """Of a function of Python only what is declared is known: which way it goes, and that it has a value."""
    value = iv.span(-opaque.MOST, opaque.MOST)
    first = ZERO
    for shape, a in zip(opaque.shapes_of(expr), args[2:], strict=True):
        slope = {opaque.RISING: _POSITIVE, opaque.FALLING: iv.neg(_POSITIVE)}.get(shape, WHOLE)
        if a.varies:
            first = iv.add(first, iv.mul(slope, a.first))
    return Jet(value, first, WHOLE, any(a.varies for a in args[2:]))


_POSITIVE = iv.span(0.0, math.inf)
_RULES: dict[str, Callable[[Call, tuple[Jet, ...], Doubt], Jet]] = {
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
    OPAQUE: _opaque,
}

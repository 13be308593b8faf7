"""Comparisons of a linear form with a constant: `2 * x > 300`, `x + y > 190`.

A *linear form* consists of numbers, attributes, sums, differences, and products and quotients with constants.
As computed it is monotone in each attribute, because rounding keeps the order and an overflow is NULL.

- A form of one attribute is no dimension: the values that pass are a range of the attribute, whose ends are
  found by bisection in the order of its values.
- A form of several attributes is one more dimension of a box, with the range of its computed values. Only
  `cover` has to know that it depends on its attributes.

The attributes of a stream have the domains of `tamis.declarations.domains`, so the size of a DOUBLE is at
most 1e100.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tamis.declarations.domains import BIGINT_LIMIT, DOUBLE_LIMIT, INT_LIMIT
from tamis.expressions.double_order import double_at, number_of
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import FLIPPED, OPPOSITE, Call, Column, Expr, Literal, Type, substitute
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Value, Vector
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, NOT_NULL, NULL, Cut, Range, above, below, compare

# Values that are tried at once: a bisection of 64 bits takes nine rounds.
_TRIED = 128
# Rounding errors of a few operations are less than this number of values.
_NEAR = 32

Coefficients = Mapping[Column, float]


class LinearForm(ComputedDimension):
    """The dimension of a box that has the computed values of a linear form of several attributes.

    `expr` is over bare columns; `coefficients` are approximate, with exact signs. Forms that only differ in
    the order of the operands of sums and products compute the same, and are equal.
    """

    __slots__ = ("coefficients", "expr")

    expr: Expr
    coefficients: Coefficients

    def __new__(cls, expr: Expr, coefficients: Coefficients) -> LinearForm:
        """`coefficients` has each column of `expr`."""
        kinds = " ".join(sorted(column.type for column in coefficients))
        made = super().__new__(cls, f"\0{to_sql(_ordered(expr), qualify=False)}\0{kinds}")
        made.expr, made.coefficients = expr, coefficients
        made.attributes, made.type = tuple(sorted(column.name for column in coefficients)), expr.type
        return made

    def range_within(self, box: Mapping[str, Range]) -> Range:
        """The computed values in a box: exactly from the least to the greatest one, by the ranges of the
        attributes alone. It contains NULL if an attribute may be NULL, or a value may overflow.
        """
        ranges = tuple(box.get(column.name, ANYTHING) for column in self.coefficients)
        return _range_within(self, ranges)


def comparison(op: str, one: Expr, other: Expr, negated: bool) -> list[dict[str, Range]] | None:
    """The boxes where `one op other` is true, or with `negated` false; None if the two aren't a linear form
    and a constant.
    """
    op = OPPOSITE[op] if negated else op
    if isinstance(one, Literal):
        op, one, other = FLIPPED[op], other, one
    if not isinstance(other, Literal) or isinstance(other.value, bool | str) or other.value is None:
        return None
    return _within(one, compare(op, other.value, one.type)) if one.type.numeric else None


def not_null(expr: Expr) -> list[dict[str, Range]] | None:
    """The boxes where a linear form isn't NULL; None for other expressions."""
    return _within(expr, (NOT_NULL,))


def _within(expr: Expr, ranges: tuple[Range, ...]) -> list[dict[str, Range]] | None:
    """The boxes where a linear form is in one of the ranges; None for other expressions."""
    coefficients = _coefficients(expr) if isinstance(expr, Call) else None
    if not coefficients:
        return None
    form = LinearForm(substitute(expr, lambda column: Column("", column.name, column.type)), coefficients)
    if len(coefficients) > 1:
        return [{form: found} for found in ranges]
    (column,) = coefficients
    inverse = [_inverse(form, found) for found in ranges]
    known = [found for found in inverse if found is not None]
    if len(known) < len(inverse):
        return None
    return [{column.name: found} for found in known if found[0] < found[1]]


def _coefficients(expr: Expr) -> Coefficients | None:
    """The coefficients of a linear form by column; None for other expressions, and for one that may fall and
    rise with the same column.
    """
    match expr:
        case Column(name=name, type=kind) if kind.numeric:
            return {Column("", name, kind): 1.0}
        case Literal(value=int() | float()) if expr.type.numeric:
            return {}
        case Call("neg", (inner,)):
            return _times(_coefficients(inner), -1.0)
        case Call("+" | "-" as op, (one, other)) if expr.type.numeric:
            left, right = _coefficients(one), _times(_coefficients(other), 1.0 if op == "+" else -1.0)
            if left is None or right is None or any(left[c] * right[c] <= 0 for c in left.keys() & right):
                return None
            return {c: left.get(c, 0.0) + right.get(c, 0.0) for c in (*left, *right)}
        case Call(
            "*",
            (Literal(value=int() | float() as factor), inner)
            | (inner, Literal(value=int() | float() as factor)),
        ):
            return _times(_coefficients(inner), float(factor))
        case Call("/", (inner, Literal(value=int() | float() as divisor))) if divisor:
            return _times(_coefficients(inner), 1.0 / float(divisor))
    return None


def _times(coefficients: Coefficients | None, factor: float) -> Coefficients | None:
    found = {column: value * factor for column, value in (coefficients or {}).items()}
    usable = coefficients is not None and all(value and np.isfinite(value) for value in found.values())
    return found if usable else None


def _ordered(expr: Expr) -> Expr:
    """The form with the operands of sums and products in order."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_ordered, expr.args))
    return Call(expr.op, tuple(sorted(args, key=to_sql)) if expr.op in ("+", "*") else args, expr.type)


def _ends(column: Column) -> tuple[int, int]:
    """The numbers of the least and the greatest value of a column, in the order of its values."""
    if column.type is Type.DOUBLE:
        return number_of(-DOUBLE_LIMIT), number_of(DOUBLE_LIMIT)
    limit = INT_LIMIT if column.type is Type.INT else int(BIGINT_LIMIT)
    return -limit, limit - 1


def _columns_at(column: Column, numbers: npt.NDArray[np.int64]) -> Vector:
    """The values of a column that have these numbers."""
    if column.type is not Type.DOUBLE:
        return Vector(numbers)
    return Vector(np.copysign(np.abs(numbers).view(np.float64), numbers))


@lru_cache(maxsize=10_000)
def _range_within(form: LinearForm, ranges: tuple[Range, ...]) -> Range:
    corners: dict[tuple[str, str], Vector] = {}
    for (column, coefficient), found in zip(form.coefficients.items(), ranges, strict=True):
        if found[0] == NULL:
            return ANYTHING
        first, last = _ends(column)
        if found[0] != LOW:
            first = _number(column, found[0])
        if found[1] != HIGH:
            last = _number(column, found[1]) - 1
        if first > last:  # beyond the domain
            return ANYTHING
        numbers = np.array([first, last] if coefficient > 0 else [last, first])
        corners["", column.name] = _columns_at(column, numbers)
    least, greatest = evaluate(form.expr, corners, 2).to_list()
    if least is None or greatest is None:
        return ANYTHING
    return below(least, form.type), above(greatest, form.type)


def _number(column: Column, cut: Cut) -> int:
    """The number of the value above a cut."""
    return number_of(cut[1]) if column.type is Type.DOUBLE else int(cut[1])


@lru_cache(maxsize=10_000)
def _inverse(form: LinearForm, wanted: Range) -> Range | None:
    """The values of the form's one column for which the form is in a range; None if that isn't known."""
    ((column, coefficient),) = form.coefficients.items()
    first, last = _ends(column)
    (at_zero,) = _values(form, column, [0])
    if not isinstance(at_zero, int | float):
        return None
    rises = coefficient > 0

    def least(begin: int, end: int, cut: Cut) -> int:
        near = None if len(cut) == 1 else _near(column, (cut[1] - at_zero) / coefficient)
        return _least(form, column, (begin, end), lambda value: ((0, value) >= cut) is rises, near)

    # A sum or product that overflows is NULL: on both sides of 0, beyond some value.
    known = _least(form, column, (first, 0), lambda value: value is not None)
    behind = _least(form, column, (0, last + 1), lambda value: value is None)
    lower, upper = wanted if rises else wanted[::-1]
    begin = least(known, behind, lower)
    end = least(begin, behind, upper)
    return (
        LOW if begin == first else _cut(column, begin, last),
        LOW if end == first else _cut(column, end, last),
    )


def _cut(column: Column, number: int, last: int) -> Cut:
    """The cut below the value with a number; `HIGH` behind the last value."""
    if number > last:
        return HIGH
    return below(number if column.type is not Type.DOUBLE else double_at(number), column.type)


def _near(column: Column, value: float) -> int | None:
    """The number of a column's value near a number."""
    if not math.isfinite(value):
        return None
    return number_of(value) if column.type is Type.DOUBLE else round(value)


def _least(
    form: LinearForm,
    column: Column,
    within: tuple[int, int],
    reached: Callable[[Value], bool],
    near: int | None = None,
) -> int:
    """The least number of a column's value, in a half-open range, for which the form's value is reached: then
    all later ones are, too. The end of the range if none is. `near`: where to look first.
    """
    begin, end = within
    first, last = (begin, end - 1) if near is None else (max(begin, near - _NEAR), min(end - 1, near + _NEAR))
    while begin < end:
        step = max((last - first) // _TRIED, 1)
        numbers = [*range(first, last, step), last] if first <= last else [end - 1]
        at = bisect_left(_values(form, column, numbers), True, key=reached)
        if at:
            begin = numbers[at - 1] + 1
        if at < len(numbers):
            end = numbers[at]
        first, last = begin, end - 1
    return begin


def _values(form: LinearForm, column: Column, numbers: list[int]) -> list[Value]:
    vector = _columns_at(column, np.array(numbers, np.int64))
    return evaluate(form.expr, {("", column.name): vector}, len(numbers)).to_list()

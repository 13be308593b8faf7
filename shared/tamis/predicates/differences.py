"""Comparisons between two attributes: `a < b + 3`, `a = b`, `a - b <= 2` (constraint tuples of goldin-1997).

A difference is one more dimension of a box, with a range like an attribute's. So boxes are intersected,
merged and evaluated as usual; only `cover.zones` knows that these dimensions depend on each other.

There are three forms, each exactly what SQL's arithmetic gives:

- WHOLE, of integers: left - right in unlimited integers, without overflow.
- ORDER, of DOUBLEs: left compared with the rounded sum right + offset: less, equal or greater (below 0, 0,
  above).
- ROUNDED, of DOUBLEs: left - right, rounded; NULL if it overflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from tamis.errors import RefusedError
from tamis.expressions.nodes import FLIPPED, OPPOSITE, Call, Column, Expr, Literal, Type
from tamis.predicates.ranges import HIGH, LOW, NOT_NULL, Cut, Range, above, below, compare

LEAST, GREATEST = -(2**63), 2**63 - 1
# Nobody needs larger offsets. Without them every sum of a cut and an offset can be written as a literal,
# and no
# sum of DOUBLEs overflows.
MOST_WHOLE = 2**62
MOST_DOUBLE = 1e290


class Form(StrEnum):
    """The forms of a difference; see the module."""

    WHOLE = "whole"
    ORDER = "order"
    ROUNDED = "rounded"


class ComputedDimension(str):
    """A dimension of a box whose values are computed from attributes. As a text it is a name that no
    attribute can have.
    """

    __slots__ = ("attributes", "type")

    attributes: tuple[str, ...]
    type: Type
    """The type of its values."""


class Difference(ComputedDimension):
    """The dimension of a box that compares two attributes."""

    __slots__ = ("form", "kind", "left", "offset", "right")

    left: str
    right: str
    kind: Type
    form: Form
    offset: float

    def __new__(cls, left: str, right: str, kind: Type, form: Form, offset: float = 0.0) -> Difference:
        """`kind`: the type of `left`; `offset` counts only for `Form.ORDER`."""
        made = super().__new__(cls, f"\0{left}\0{right}\0{form}\0{offset!r}")
        made.left, made.right, made.kind, made.form, made.offset = left, right, kind, form, offset
        made.attributes = left, right
        made.type = Type.BIGINT if form is Form.WHOLE else Type.DOUBLE
        return made


def rounded(one: str, other: str) -> Difference:
    """The dimension of the rounded difference of two attributes, in one direction: the other direction is
    exactly its negative.
    """
    return Difference(min(one, other), max(one, other), Type.DOUBLE, Form.ROUNDED)


class _Side(NamedTuple):
    column: Column
    offset: float | int


def comparison(op: str, one: Expr, other: Expr, negated: bool) -> list[dict[str, Range]] | None:
    """The boxes where `one op other` is true, or with `negated` false; None if the two aren't attributes with
    constant offsets.

    Raises `RefusedError` if they are, but differ in type or are rounded twice.
    """
    op = OPPOSITE[op] if negated else op
    for left, right, turned in ((one, other, op), (other, one, FLIPPED[op])):
        match left, right:
            case Call("-", (Column() as x, Column() as y)), Literal(value=int() | float() as value):
                return _of_difference(turned, x, y, value)
    first, second = _side(one), _side(other)
    if first is None or second is None:
        return None
    return _of_sides(op, first, second)


def _of_difference(op: str, x: Column, y: Column, value: float) -> list[dict[str, Range]]:
    """`x - y op value`."""
    kind = _one_type(x, y)
    if kind is Type.DOUBLE:
        if x.name == y.name:
            raise _itself(x)
        flip = x.name > y.name  # x - y and y - x are rounded alike
        made = rounded(x.name, y.name)
        ranges = compare(op, value, Type.DOUBLE)
        return [{made: _negated(found) if flip else found} for found in ranges]
    if not isinstance(value, int):
        raise RefusedError(
            f"'{x.name} - {y.name}' is a whole number, and {value!r} isn't",
            hint="compare it with a whole number",
        )
    return _whole(x, y, [_fitting(found) for found in _integers(op, value)])


def not_null(expr: Call) -> list[dict[str, Range]] | None:
    """The boxes where `x - y` isn't NULL; None for other expressions. Raises `RefusedError` as `comparison`
    does.
    """
    match expr:
        case Call("-", (Column() as x, Column() as y)) if x.name != y.name:
            if _one_type(x, y) is Type.DOUBLE:
                return [{rounded(x.name, y.name): NOT_NULL}]
            return _whole(x, y, [_fitting(NOT_NULL)])
    return None


def _fitting(found: Range) -> Range:
    """The part of a range where the difference is an int64: otherwise it is NULL."""
    return max(found[0], (0, LEAST)), min(found[1], (0, GREATEST + 1))


def _of_sides(op: str, first: _Side, second: _Side) -> list[dict[str, Range]]:
    """`x + p op y + q`."""
    (x, p), (y, q) = first, second
    kind = _one_type(x, y)
    if kind is not Type.DOUBLE:
        if abs(q - p) > MOST_WHOLE:
            raise _too_large(q - p)
        boxes = _whole(x, y, _integers(op, int(q - p)))
        for side in (first, second):
            boxes = [guarded for box in boxes if (guarded := _guarded(box, side)) is not None]
        return boxes
    if p and q:
        raise RefusedError(
            f"'{x.name} + {p}' and '{y.name} + {q}' are rounded separately",
            hint="put the offset on one side",
        )
    if p:
        return _of_sides(FLIPPED[op], second, first)
    if x.name == y.name:
        if q:
            raise _itself(x)
        return [{x.name: NOT_NULL}] if op in ("=", "<=", ">=") else []
    if not q and x.name > y.name:
        return _of_sides(FLIPPED[op], second, first)
    made = Difference(x.name, y.name, kind, Form.ORDER, float(q))
    return [{made: found} for found in _integers(op, 0)]


def _whole(x: Column, y: Column, ranges: Iterable[Range]) -> list[dict[str, Range]]:
    ranges = [found for found in ranges if found[0] < found[1]]
    if x.name == y.name:  # the difference is 0
        return (
            [{x.name: NOT_NULL}] if any(lower < (0, 1) and upper > (0, 0) for lower, upper in ranges) else []
        )
    made = Difference(min(x.name, y.name), max(x.name, y.name), x.type, Form.WHOLE)
    return [{made: found if x.name == made.left else negated_range(found)} for found in ranges]


def _guarded(box: dict[str, Range], side: _Side) -> dict[str, Range] | None:
    """The part of a box where column + offset is an int64: otherwise it is NULL. Times never get
    that large.
    """
    name, kind, offset = side.column.name, side.column.type, int(side.offset)
    if kind is Type.TIMESTAMP:
        return box
    lower, upper = box.get(name, (LOW, HIGH))
    if offset > 0:
        upper = min(upper, above(GREATEST - offset, kind))
    elif offset < 0:
        lower = max(lower, below(LEAST - offset, kind))
    if lower >= upper:
        return None
    return {**box, name: (lower, upper)} if offset or name in box else box


def _integers(op: str, value: int) -> tuple[Range, ...]:
    """The ranges where `difference op value`, in unlimited integers."""
    at, behind = (0, value), (0, value + 1)
    return {
        "=": ((at, behind),),
        "!=": ((LOW, at), (behind, HIGH)),
        "<": ((LOW, at),),
        "<=": ((LOW, behind),),
        ">": ((behind, HIGH),),
        ">=": ((at, HIGH),),
    }[op]


def negated_range(found: Range) -> Range:
    """The range of right - left, if `found` is the range of left - right: integers."""
    lower, upper = found
    return (
        LOW if upper == HIGH else (0, 1 - upper[1]),
        HIGH if lower == LOW else (0, 1 - lower[1]),
    )


def _negated(found: Range) -> Range:
    """The range of the negative: DOUBLEs."""
    lower, upper = found
    return (
        LOW if upper == HIGH else above(-upper[1], Type.DOUBLE),
        HIGH if lower == LOW else above(-lower[1], Type.DOUBLE),
    )


def _side(expr: Expr) -> _Side | None:
    match expr:
        case Column():
            return _Side(expr, 0)
        case Call("+", (Column() as column, Literal(value=int() | float() as value))) | Call(
            "+", (Literal(value=int() | float() as value), Column() as column)
        ):
            return _offset(column, value)
        case Call("-", (Column() as column, Literal(value=int() | float() as value))):
            return _offset(column, -value)
    return None


def _offset(column: Column, value: float) -> _Side:
    if column.type is not Type.DOUBLE and not isinstance(value, int):
        raise RefusedError(
            f"'{column.name}' is {column.type} and {value!r} isn't a whole number",
            hint="compare attributes with whole offsets, or declare them DOUBLE",
        )
    if abs(value) > (MOST_DOUBLE if column.type is Type.DOUBLE else MOST_WHOLE):
        raise _too_large(value)
    return _Side(column, float(value) + 0.0 if column.type is Type.DOUBLE else value)


def _one_type(x: Column, y: Column) -> Type:
    if x.type is y.type is Type.DOUBLE or (x.type.integral and y.type.integral):
        return x.type
    raise RefusedError(
        f"'{x.name}' is {x.type} and '{y.name}' is {y.type}", hint="compare two DOUBLEs, or two whole numbers"
    )


def _too_large(offset: float) -> RefusedError:
    return RefusedError(f"the offset {offset!r} is too large", hint="compare attributes with smaller offsets")


def _itself(x: Column) -> RefusedError:
    return RefusedError(f"'{x.name}' is compared with itself", hint="compare two attributes")


def largest_below(cut: Cut) -> float:
    """The greatest DOUBLE below a cut of a rounded difference: -inf below LOW."""
    if cut == LOW:
        return -math.inf
    return math.nextafter(math.inf if cut == HIGH else cut[1], -math.inf)

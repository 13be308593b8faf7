"""A predicate of one stream in canonical form: a union of boxes, which is written as SQL and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import to_sql
from tamis.predicates.boxes import EVERYTHING, Box
from tamis.predicates.cover import covered, possible
from tamis.predicates.differences import (
    GREATEST,
    LEAST,
    MOST_WHOLE,
    Difference,
    Form,
    negated_range,
)
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.keys import checked
from tamis.predicates.linear_forms import LinearForm
from tamis.predicates.normal_form import BUDGET, boxes, types_of
from tamis.predicates.ranges import HIGH, IS_NULL, LOW, NOT_NULL, NULL, Range, Value, above, bounds_text

Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Predicate:
    """A union of boxes. Equal predicates may have different boxes: `implies` in both directions shows that
    they are equal.

    `types` has the type of each attribute that was named, also of those that turned out not to matter.
    """

    boxes: tuple[Box, ...]
    types: Mapping[str, Type]

    @staticmethod
    def of(condition: Expr, budget: int = BUDGET) -> Predicate:
        """The canonical form of a condition over the columns of one stream. Raises `RefusedError`."""
        found = [box for box in boxes(condition, budget) if possible(box)]
        if len(found) > 1 and covered(EVERYTHING, found):
            found = [EVERYTHING]
        return Predicate(tuple(map(dict, found)), types_of(condition))

    @property
    def never(self) -> bool:
        """True for a contradiction."""
        return not self.boxes

    @property
    def always(self) -> bool:
        """True for a tautology: it is true for every tuple, also for one with NULLs."""
        return any(not box for box in self.boxes)

    def expression(self) -> Expr:
        """The predicate as a condition over bare column names."""
        if self.never:
            return Literal(False, Type.BOOLEAN)
        if self.always:
            return Literal(True, Type.BOOLEAN)
        return _chain("or", [_chain("and", self._box(box)) for box in self.boxes])

    def sql(self) -> str:
        """The predicate as SQL."""
        return to_sql(self.expression(), qualify=False)

    def holds(self, columns: Columns) -> Bools:
        """The rows that satisfy it, of shape (n,).

        `columns`: arrays of shape (n,) by attribute, at least those that its boxes name. Masked values, NaN,
        NaT, infinities and None are NULL. Times are datetime64, or int64 microseconds. Raises `KeyError` for
        a missing attribute, `InputError` for columns of other lengths or types.
        """
        return self._dispatcher.any(checked(columns, self.types, self._dispatcher.read))

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        return Dispatcher([self])

    def _box(self, box: Box) -> list[Expr]:
        out: list[Expr] = []
        for name, found in sorted(box.items()):
            if isinstance(name, Difference):
                out += difference_conditions(name, found, box, self.types)
                continue
            if isinstance(name, LinearForm):
                out += _range_conditions(name.expr, found, name.type)
                continue
            kind = self.types[name]
            column = Column("", name, kind)
            null = Call("is_null", (column,), Type.BOOLEAN)
            if found == IS_NULL:
                out.append(null)
                continue
            ends = [
                Call(op, (column, _constant(value, kind)), Type.BOOLEAN)
                for op, value in bounds_text((max(found[0], NOT_NULL[0]), found[1]), kind)
            ]
            if not ends:
                ends = [Call("not", (null,), Type.BOOLEAN)]
            inner = _chain("and", list(ends))
            out += [Call("or", (null, inner), Type.BOOLEAN)] if found[0] == NULL else ends
        return out


def _constant(value: Value, kind: Type) -> Literal:
    """The constant as people write it: 5, not 5.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER:
        return Literal(int(value), Type.BIGINT)
    return Literal(value, kind)


def _chain(op: str, parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else Call(op, tuple(parts), Type.BOOLEAN)


def difference_conditions(
    difference: Difference, found: Range, box: Mapping[str, Range], types: Mapping[str, Type]
) -> list[Expr]:
    """The comparisons that put a difference into a range. `box` has the ranges of the same clause."""
    left = Column("", difference.left, types[difference.left])
    right = Column("", difference.right, types[difference.right])
    if difference.form is Form.ROUNDED:
        return _range_conditions(Call("-", (left, right), Type.DOUBLE), found, Type.DOUBLE)
    if difference.form is Form.ORDER:
        op = {(LOW, (0, 0)): "<", (LOW, (0, 1)): "<=", ((0, 0), (0, 1)): "=", ((0, 0), HIGH): ">="}.get(
            found, ">"
        )
        return [_compare(op, left, _plus(right, difference.offset))]
    return _whole_conditions(left, right, found, box)


def _range_conditions(expr: Expr, found: Range, kind: Type) -> list[Expr]:
    """The comparisons that put the value of an expression into a range without NULL."""
    if found == NOT_NULL:
        return [_known(expr)]
    return [_compare(op, expr, _constant(value, kind)) for op, value in bounds_text(found, kind)]


def _whole_conditions(left: Column, right: Column, found: Range, box: Mapping[str, Range]) -> list[Expr]:
    lower, upper = found
    if lower != LOW and upper != HIGH:
        if upper[1] == lower[1] + 1:
            return [_compare("=", left, _plus(right, lower[1]))]
        way = negated_range(found)
        if lower[1] == -GREATEST and upper[1] <= GREATEST:  # says only that right - left is an int64
            return _whole_conditions(right, left, way, box)
        if lower[1] < LEAST or upper[1] > GREATEST + 1:
            if way[0][1] >= LEAST and way[1][1] <= GREATEST + 1:
                return _whole_conditions(right, left, way, box)
            halves = ((lower, (0, 0)), ((0, 0), upper))  # an int64 in neither direction: each has its half
            sides = (Call("and", tuple(_half(left, right, half, box)), Type.BOOLEAN) for half in halves)
            return [Call("or", tuple(sides), Type.BOOLEAN)]
        minus = Call("-", (left, right), Type.INTERVAL if left.type is Type.TIMESTAMP else Type.BIGINT)
        if upper[1] > GREATEST and lower[1] <= -GREATEST:
            other = Call("-", (right, left), minus.type)
            return [_known(minus)] if lower[1] == LEAST else [_known(minus), _known(other)]
        ends = [_end(">=", ">", lower[1], left.type)] if lower[1] > LEAST else []
        ends += [_end("<", "<=", upper[1], left.type)] if upper[1] <= GREATEST else []
        return [_compare(op, minus, _literal(value, minus.type)) for op, value in ends]
    if upper == HIGH:
        left, right, upper = right, left, negated_range(found)[1]
    # left - right < upper. If right + upper is no int64, a comparison with it is NULL.
    if upper[1] == 1:
        return [_compare("<=", left, right)]
    safe = above(GREATEST - upper[1], right.type)
    fits = right.type is Type.TIMESTAMP or box.get(right.name, (LOW, HIGH))[1] <= safe
    if upper[1] <= 0 or (upper[1] <= MOST_WHOLE and fits):
        op, offset = _end("<", "<=", upper[1], left.type)
        return [_compare(op, left, _plus(right, offset))]
    kind = Type.INTERVAL if left.type is Type.TIMESTAMP else Type.BIGINT
    minus = Call("-", (right, left), kind)
    least = 1 - upper[1]
    near = _compare(">=", minus, _literal(least, kind)) if least > LEAST else _known(minus)
    return [Call("or", (near, _compare("<", left, right)), Type.BOOLEAN)]


def _end(at: str, past: str, value: int, kind: Type) -> tuple[str, int]:
    """The operator and constant of an end: `at` a value, or `past` the time before it, if that is whole
    seconds.

    The second form avoids intervals with a single microsecond, such as INTERVAL '60.000001' SECOND.
    """
    whole = kind is Type.TIMESTAMP and value % 1_000_000 == 1
    return (past, value - 1) if whole else (at, value)


def _known(expr: Expr) -> Expr:
    """The value isn't NULL, and doesn't overflow."""
    return Call("not", (Call("is_null", (expr,), Type.BOOLEAN),), Type.BOOLEAN)


def _half(left: Column, right: Column, found: Range, box: Mapping[str, Range]) -> list[Expr]:
    """The condition that a difference is in a range. It also has the sign of the difference, which may
    overflow.
    """
    sign = _compare("<" if found[1] == (0, 0) else ">=", left, right)
    return [*_whole_conditions(left, right, found, box), sign]


def _plus(column: Column, offset: float) -> Expr:
    if not offset:
        return column
    kind = Type.INTERVAL if column.type is Type.TIMESTAMP else column.type
    op = "+" if offset > 0 else "-"
    return Call(op, (column, _literal(abs(offset), kind)), column.type)


def _literal(value: float, kind: Type) -> Literal:
    if kind is Type.DOUBLE and value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER:
        return Literal(int(value), Type.BIGINT)
    return Literal(value, kind)


def _compare(op: str, one: Expr, other: Expr) -> Call:
    return Call(op, (one, other), Type.BOOLEAN)

"""A predicate of one stream in canonical form: a union of boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type
from tamis.expressions.sql_text import to_sql
from tamis.predicates.boxes import EVERYTHING, Box, merged
from tamis.predicates.columns import checked
from tamis.predicates.cover import covered, possible
from tamis.predicates.difference_sql import difference_conditions
from tamis.predicates.differences import Difference
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.normal_form import BUDGET, boxes
from tamis.predicates.ranges import IS_NULL, NOT_NULL, NULL, Value, bounds_text

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
        return Predicate(tuple(map(dict, found)), _types(condition))

    @property
    def never(self) -> bool:
        """True for a contradiction."""
        return not self.boxes

    @property
    def always(self) -> bool:
        """True for a tautology: it is true for every tuple, also for one with NULLs."""
        return any(not box for box in self.boxes)

    def either(self, other: Predicate) -> Predicate:
        """The union with another predicate."""
        return Predicate(tuple(merged((*self.boxes, *other.boxes))), {**other.types, **self.types})

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


def _types(expr: Expr) -> dict[str, Type]:
    if isinstance(expr, Column):
        return {expr.name: expr.type}
    if isinstance(expr, Call):
        return {name: kind for arg in expr.args for name, kind in _types(arg).items()}
    return {}

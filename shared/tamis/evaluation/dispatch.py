"""Every filter of a stream's queries, evaluated in one pass over a micro-batch.

A filter that compares attributes with constants is a union of boxes and goes into the bitmap index, which
costs little more for many filters than for one (kuntschke-2006, section 4). Any other is evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr
from tamis.expressions.opaque import FunctionError
from tamis.expressions.vectors import Vector
from tamis.planning.plan_json import MOST_REMEMBERED
from tamis.planning.remembered import Remembered, same_ends
from tamis.predicates import Predicate
from tamis.predicates.columns import array_of
from tamis.predicates.evaluation import Dispatcher

Bools = npt.NDArray[np.bool_]

# Clauses of a filter that the index takes: one of more is rare, and costs all others their words of bits.
MOST_CLAUSES = 200
# Filters from which on the index costs less than evaluating each (benchmarks/sharing/dispatch.py).
WORTH_IT = 4
# Up to so many are compiled together at every change: that takes milliseconds.
FEW = 64
# Rows that are looked up at a time: their bits for hundreds of filters stay in the cache.
BLOCK = 512


class Held(NamedTuple):
    """Where filters hold: of shape (filters, n), by `Dispatch.row`. One that calls a function of Python which
    fails or isn't there holds everywhere, and `failed` tells by row why.
    """

    found: Bools
    failed: Mapping[int, FunctionError]


class _Compiled:
    """Some distinct filters, compiled. `rows` numbers them."""

    def __init__(self, filters: Sequence[Expr | None]) -> None:
        distinct = dict.fromkeys(filters)
        given = [filter_ for filter_ in distinct if filter_ is not None]
        boxed = {filter_: found for filter_ in given if (found := _boxes(filter_)) is not None}
        if len(boxed) < WORTH_IT:
            boxed = {}
        self._boxed = len(boxed)
        self._alone = [filter_ for filter_ in given if filter_ not in boxed]
        order: list[Expr | None] = [*boxed, *self._alone]
        if None in distinct:
            order.append(None)
        self.rows: Mapping[Expr | None, int] = {filter_: row for row, filter_ in enumerate(order)}
        # To hash thousands of filters takes longer than to evaluate them. They are kept, so that no other
        # comes to have the identity of one.
        self._kept, self._given = list(filters), len(filters)
        self._known = {id(filter_): self.rows[filter_] for filter_ in filters}
        self._dispatcher = Dispatcher(list(boxed.values()))

    def row(self, filter_: Expr | None) -> int | None:
        """The row of a filter; None where it isn't among them."""
        found = self._known.get(id(filter_))
        if found is None and (found := self.rows.get(filter_)) is not None:
            self._kept.append(filter_)
            self._known[id(filter_)] = found
        return found

    @property
    def spent(self) -> bool:
        """Whether more is kept than is worth it."""
        return len(self._kept) > 2 * self._given + FEW

    def over(self, columns: Mapping[str, Vector], found: Bools) -> dict[int, FunctionError]:
        """Set where each filter holds; `found` is of shape (filters, n)."""
        n = found.shape[1]
        if self._boxed:
            # Without an attribute there is nothing to look up; the index still has to be told how many rows.
            read = {name: array_of(columns[name]) for name in self._dispatcher.read} or {"": np.zeros(n)}
            for first in range(0, n, BLOCK):
                part = {name: values[first : first + BLOCK] for name, values in read.items()}
                found[: self._boxed, first : first + BLOCK] = self._dispatcher.which(part).T
        view = {("", name): column for name, column in columns.items()}
        failed = {}
        for row, filter_ in enumerate(self._alone, self._boxed):
            try:
                found[row] = holds(filter_, view, n)
            except FunctionError as error:
                found[row], failed[row] = True, error
        return failed


class Dispatch:
    """The distinct filters over a stream, compiled: conditions over Column("", …).

    Of thousands the new ones are compiled apart from those of `before`, of which some may not be asked for
    any more, until it is worth its while to compile all together.
    """

    def __init__(self, filters: Iterable[Expr | None], before: Dispatch | None = None) -> None:
        """`before` must be of the same stream."""
        asked = {id(filter_): filter_ for filter_ in filters}
        base = before._base if before is not None else _Compiled(())
        rows = {number: base.row(filter_) for number, filter_ in asked.items()}
        new = [filter_ for number, filter_ in asked.items() if rows[number] is None]
        idle = len(base.rows) - len(set(rows.values()) - {None})
        if len(new) + idle > (len(asked) // 8 if len(asked) > FEW else 0) or base.spent:
            base, new = _Compiled(list(asked.values())), []
        self._base: _Compiled = base
        self._new = new
        same = before is not None and same_ends(before._new, new)[0] == len(before._new) == len(new)
        self._recent: _Compiled = before._recent if before is not None and same else _Compiled(new)

    def __len__(self) -> int:
        """How many rows `over` returns."""
        return len(self._base.rows) + len(self._recent.rows)

    def row(self, filter_: Expr | None) -> int:
        """Where a filter is in what `over` returns; it must be among them."""
        found = self.find(filter_)
        assert found is not None
        return found

    def find(self, filter_: Expr | None) -> int | None:
        """The same of one that need not be among them."""
        found = self._base.row(filter_)
        if found is None and (found := self._recent.row(filter_)) is not None:
            found += len(self._base.rows)
        return found

    def over(self, columns: Mapping[str, Vector], count: int) -> Held:
        """Where each filter holds for `count` tuples; `columns` are by name."""
        many = len(self._base.rows)
        found = np.ones((len(self), count), np.bool_)
        failed = self._base.over(columns, found[:many])
        failed |= {many + row: error for row, error in self._recent.over(columns, found[many:]).items()}
        return Held(found, failed)


# A plan comes with every change of one query, and its other filters are the objects that they were.
_BOXES = Remembered[Predicate | None](MOST_REMEMBERED)


def _boxes(filter_: Expr) -> Predicate | None:
    """The filter as boxes; None where it isn't a union of them, or compares attributes with each other."""

    def make() -> Predicate | None:
        try:
            found = Predicate.of(filter_, MOST_CLAUSES)
        except RefusedError:
            return None
        return found if all(isinstance(name, str) for box in found.boxes for name in box) else None

    return _BOXES.one(filter_, make)

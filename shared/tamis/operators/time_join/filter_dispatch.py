"""Evaluation of all filters of a stream's queries in one pass over a micro-batch.

A filter that compares attributes with constants is a union of boxes and goes into the bitmap index, which
costs little more for many filters than for one (kuntschke-2006, section 4). Other filters are evaluated one
by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Vector
from tamis.identity_cache import IdentityCache
from tamis.identity_diff import identity_diff
from tamis.plan.wire import MOST_CACHED
from tamis.predicates.boxes import Box
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.keys import array_of
from tamis.predicates.normal_form import boxes, types_of

Bools = npt.NDArray[np.bool_]

# Clauses of a filter that the index takes. More are rare, and would lengthen the bitmaps of all other
# filters.
MOST_CLAUSES = 200
# From this number of filters on, the index costs less than evaluating each (benchmarks/sharing/dispatch.py).
MIN_INDEXED = 4
# Up to this number of filters, all are compiled again at every change: that takes milliseconds.
MAX_RECOMPILED = 64
# Rows that are evaluated at a time: their bits for hundreds of filters stay in the cache.
BLOCK = 512


class FilterResults(NamedTuple):
    """Masks of the tuples that pass each filter: shape (filters, n), rows as `Dispatch.row` numbers them.

    A filter that calls a Python function passes all tuples if the function fails or isn't installed; `failed`
    has the errors by row.
    """

    found: Bools
    failed: Mapping[int, FunctionError]


class _CompiledFilters:
    """Compiled distinct filters. `rows`: the number of each."""

    def __init__(self, filters: Sequence[Expr | None]) -> None:
        distinct = dict.fromkeys(filters)
        given = [filter_ for filter_ in distinct if filter_ is not None]
        boxed = {filter_: found for filter_ in given if (found := _boxes(filter_)) is not None}
        if len(boxed) < MIN_INDEXED:
            boxed = {}
        self._boxed = len(boxed)
        self._alone = [filter_ for filter_ in given if filter_ not in boxed]
        order: list[Expr | None] = [*boxed, *self._alone]
        if None in distinct:
            order.append(None)
        self.rows: Mapping[Expr | None, int] = {filter_: row for row, filter_ in enumerate(order)}
        # Filters are found by identity, since hashing thousands of them takes longer than evaluating them.
        # They are kept alive, so that no other object gets the identity of one.
        self._kept, self._given = list(filters), len(filters)
        self._known = {id(filter_): self.rows[filter_] for filter_ in filters}
        self._dispatcher = Dispatcher(list(boxed.values()))

    def row(self, filter_: Expr | None) -> int | None:
        """The row of a filter; None if it wasn't compiled here."""
        found = self._known.get(id(filter_))
        if found is None and (found := self.rows.get(filter_)) is not None:
            self._kept.append(filter_)
            self._known[id(filter_)] = found
        return found

    @property
    def stale(self) -> bool:
        """True if most of the filters in memory are equal copies of others."""
        return len(self._kept) > 2 * self._given + MAX_RECOMPILED

    def over(self, columns: Mapping[str, Vector], found: Bools) -> dict[int, FunctionError]:
        """Set `found`, of shape (filters, n), to the tuples that pass each filter; returns the errors
        by row.
        """
        n = found.shape[1]
        if self._boxed:
            # Without attributes the index needs a column of any name for the number of rows.
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

    If there are thousands of filters, a change compiles only the new ones. The filters of `before` are used
    again, even if some of them are no longer needed, until it is cheaper to compile all of them again.
    """

    def __init__(self, filters: Iterable[Expr | None], before: Dispatch | None = None) -> None:
        """`before` must be of the same stream."""
        asked = {id(filter_): filter_ for filter_ in filters}
        base = before._base if before is not None else _CompiledFilters(())
        rows = {number: base.row(filter_) for number, filter_ in asked.items()}
        new = [filter_ for number, filter_ in asked.items() if rows[number] is None]
        idle = len(base.rows) - len(set(rows.values()) - {None})
        if len(new) + idle > (len(asked) // 8 if len(asked) > MAX_RECOMPILED else 0) or base.stale:
            base, new = _CompiledFilters(list(asked.values())), []
        self._base: _CompiledFilters = base
        self._new = new
        same = before is not None and not identity_diff(before._new, new)
        self._recent: _CompiledFilters = (
            before._recent if before is not None and same else _CompiledFilters(new)
        )

    def __len__(self) -> int:
        """The number of rows that `over` returns."""
        return len(self._base.rows) + len(self._recent.rows)

    def row(self, filter_: Expr | None) -> int:
        """The row of a filter in the result of `over`. The filter must be one of those given."""
        found = self.find(filter_)
        assert found is not None
        return found

    def find(self, filter_: Expr | None) -> int | None:
        """The row of a filter in the result of `over`; None if it isn't one of those given."""
        found = self._base.row(filter_)
        if found is None and (found := self._recent.row(filter_)) is not None:
            found += len(self._base.rows)
        return found

    def over(self, columns: Mapping[str, Vector], count: int) -> FilterResults:
        """The tuples, of `count`, that pass each filter; `columns` are by name."""
        many = len(self._base.rows)
        passes = np.ones((len(self), count), np.bool_)
        failed = self._base.over(columns, passes[:many])
        failed |= {many + row: error for row, error in self._recent.over(columns, passes[many:]).items()}
        return FilterResults(passes, failed)


class _Boxed(NamedTuple):
    """A filter as boxes, of which some may contradict themselves, and the types of its columns."""

    boxes: Sequence[Box]
    types: Mapping[str, Type]


# Every change of one query makes a new plan, in which the other filters are the same objects as before.
_BOXES = IdentityCache[_Boxed | None](MOST_CACHED)


def _boxes(filter_: Expr) -> _Boxed | None:
    """The filter as boxes; None if it isn't a union of boxes, or compares attributes with each other."""

    def make() -> _Boxed | None:
        try:
            found = _Boxed(boxes(filter_, MOST_CLAUSES), types_of(filter_))
        except RefusedError:
            return None
        return found if all(isinstance(name, str) for box in found.boxes for name in box) else None

    return _BOXES.one(filter_, make)

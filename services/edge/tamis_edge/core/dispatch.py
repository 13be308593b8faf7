"""Every filter of a stream's entries, in all of its topics, evaluated in one pass over a micro-batch.

A filter that compares attributes with constants is a union of boxes and goes into the bitmap index, which
costs little more for many filters than for one (kuntschke-2006, section 4). Any other is evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr, columns
from tamis.expressions.opaque import FunctionError
from tamis.expressions.vectors import Columns, Vector
from tamis.planning.plan_json import MOST_REMEMBERED
from tamis.planning.remembered import Remembered
from tamis.predicates import Predicate
from tamis.predicates.evaluation import Dispatcher
from tamis.telemetry.logs import get_logger
from tamis_edge.core.rows import Batch

_log = get_logger("edge.dispatch")

Bools = npt.NDArray[np.bool_]

# Clauses of a filter that the index takes: one of more is rare, and costs all others their words of bits.
MOST_CLAUSES = 200
# Filters from which on the index costs less than evaluating each (benchmarks/sharing/dispatch.py).
WORTH_IT = 4
# Rows that are looked up at a time: their bits for hundreds of filters stay in the cache.
BLOCK = 512


class Dispatch:
    """The distinct filters of a stream, compiled. `rows` numbers them."""

    def __init__(self, filters: Iterable[Expr | None]) -> None:
        self.filters = frozenset(filters)
        given = [filter_ for filter_ in self.filters if filter_ is not None]
        boxed = {filter_: found for filter_ in given if (found := _boxes(filter_)) is not None}
        if len(boxed) < WORTH_IT:
            boxed = {}
        self._boxed = len(boxed)
        self._alone = [filter_ for filter_ in given if filter_ not in boxed]
        order: list[Expr | None] = [*boxed, *self._alone]
        if None in self.filters:
            order.append(None)
        self.rows: Mapping[Expr | None, int] = {filter_: row for row, filter_ in enumerate(order)}
        self._dispatcher = Dispatcher(list(boxed.values()))
        self._read = sorted({column.name for filter_ in boxed for column in columns(filter_)})

    def over(self, batch: Batch) -> Bools:
        """Where each filter holds: of shape (filters, n), by `rows`."""
        n = len(batch)
        found = np.ones((len(self.rows), n), np.bool_)
        if self._boxed:
            # Without an attribute there is nothing to look up; the index still has to be told how many rows.
            read = {name: _array(batch.columns[name]) for name in self._read} or {"": np.zeros(n)}
            for first in range(0, n, BLOCK):
                part = {name: values[first : first + BLOCK] for name, values in read.items()}
                found[: self._boxed, first : first + BLOCK] = self._dispatcher.which(part).T
        view = batch.view()
        for row, filter_ in enumerate(self._alone, self._boxed):
            found[row] = _passing(filter_, view, n)
        return found


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


def _array(column: Vector) -> npt.NDArray[np.generic]:
    """The values as predicates read them: NaN or None for NULL."""
    if column.null is None or not column.null.any() or column.data.dtype.kind == "O":
        return column.data
    if column.data.dtype.kind == "f":
        return np.where(column.null, np.nan, column.data)
    values = column.data.astype(np.object_)
    values[column.null] = None
    return values


def _passing(filter_: Expr, view: Columns, count: int) -> Bools:
    """Where a filter holds; everywhere where a function of Python fails, and the joiner sees to the rest."""
    try:
        return holds(filter_, view, count)
    except FunctionError as error:
        _log.error("a filter can't be evaluated: every tuple passes", error=str(error))
        return np.ones(count, np.bool_)

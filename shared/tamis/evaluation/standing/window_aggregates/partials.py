"""Partial aggregates of a column by pane and group, and the aggregates of windows computed from them.

There are two kinds. The first has the count of values, their exact sum, the least and the greatest value;
only those that an aggregate needs are kept. The second, for `median` and `count(DISTINCT)`, has each value
with the number of its occurrences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.dictionary_encoding import DictionaryEncoder
from tamis.evaluation.standing.aggregates.measures import MADE_OF, Measure
from tamis.evaluation.standing.aggregates.sums import (
    SCALE,
    fitting,
    of_doubles,
    of_whole,
    quotient,
)
from tamis.evaluation.standing.window_aggregates.table import (
    Array,
    PartialTable,
    Places,
    merged,
    runs,
)
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector, dtype_of
from tamis.query.model import Aggregate

_WAYS: dict[Measure, np.ufunc] = {
    "count": np.add,
    "total": np.add,
    "least": np.minimum,
    "greatest": np.maximum,
}


@dataclass(frozen=True)
class SortedBatch:
    """Tuples of a batch in the order of their panes and groups: `order` are their places in the batch."""

    pane: Places
    group: Places
    order: Places

    @staticmethod
    def of(pane: Places, group: Places) -> SortedBatch:
        """Sort tuples by pane and group."""
        order, _ = runs((pane, group))
        return SortedBatch(pane[order], group[order], order)

    def where(self, wanted: NDArray[np.bool_]) -> SortedBatch:
        """The tuples of a mask over the batch."""
        kept = wanted[self.order]
        return self if kept.all() else SortedBatch(self.pane[kept], self.group[kept], self.order[kept])

    @cached_property
    def starts(self) -> Places:
        """The index where each pane and group begins."""
        new = (self.pane[1:] != self.pane[:-1]) | (self.group[1:] != self.group[:-1])
        return np.flatnonzero(np.concatenate((np.ones(min(1, len(self.pane)), np.bool_), new)))


@dataclass(frozen=True)
class Partial:
    """One table of partial aggregates: of all tuples (`column` is None), of the values of a column together,
    or of each value separately (`each`).
    """

    column: Column | None
    measures: tuple[Measure, ...]
    each: bool = False

    @property
    def ways(self) -> tuple[np.ufunc, ...]:
        """The functions that merge the measures of several panes."""
        return tuple(_WAYS[one] for one in self.measures)

    def dtypes(self) -> tuple[list[np.dtype[Any]], list[np.dtype[Any]]]:
        """The types of keys and measures."""
        whole = np.dtype(np.int64)
        keys = [whole, whole]
        if self.each and self.column is not None:
            keys.append(whole if self.column.type is Type.VARCHAR else dtype_of(self.column.type))
        return keys, [self._dtype(one) for one in self.measures]

    def _dtype(self, measure: Measure) -> np.dtype[Any]:
        if measure in ("least", "greatest") and self.column is not None:
            return dtype_of(self.column.type)
        return np.dtype(np.object_ if measure == "total" else np.int64)

    def empty(self) -> PartialTable:
        """A table without rows."""
        keys, measures = self.dtypes()
        return PartialTable(tuple(np.empty(0, k) for k in keys), tuple(np.empty(0, m) for m in measures))

    def of(self, batch: SortedBatch, vector: Vector | None, texts: DictionaryEncoder) -> PartialTable:
        """The table of a batch; `vector` has the column's values, and `texts` encodes those that are text."""
        if self.column is None or vector is None:
            return self._together(batch, None)
        if vector.null is not None:
            batch = batch.where(~vector.null)
        if not len(batch.order):
            return self.empty()
        values = vector.data[batch.order]
        if self.column.type is Type.DOUBLE:
            values = values + 0.0  # -0.0 is 0.0
        if not self.each:
            return self._together(batch, values)
        if self.column.type is Type.VARCHAR:
            values = texts.encode(values.tolist())
        ones = np.ones(len(values), np.int64)
        return merged([PartialTable((batch.pane, batch.group, values), (ones,))], self.ways)

    def _together(self, batch: SortedBatch, values: Array | None) -> PartialTable:
        starts = batch.starts
        if not len(starts):
            return self.empty()
        found: list[Array] = []
        for measure in self.measures:
            if measure == "count":
                found.append(np.diff(np.append(starts, len(batch.pane))))
            elif measure == "total":
                assert values is not None
                double = values.dtype.kind == "f"
                found.append(of_doubles(values, starts) if double else of_whole(values, starts))
            else:
                assert values is not None
                found.append(_WAYS[measure].reduceat(values, starts))
        return PartialTable((batch.pane[starts], batch.group[starts]), tuple(found))

    def measure(self, table: PartialTable, name: Measure) -> Array:
        """One measure of a table of this kind."""
        return table.measures[self.measures.index(name)]


def partials(aggregates: Sequence[Aggregate]) -> tuple[Partial, ...]:
    """The partial aggregates that some aggregates need: first those of all tuples of a group, then those of
    each column.
    """
    together: dict[Column, list[Measure]] = {}
    each: dict[Column, None] = {}
    for one in aggregates:
        if one.column is None:
            continue
        if needs_values(one):
            each[one.column] = None
        else:
            together.setdefault(one.column, []).extend(MADE_OF[one.function])
    return (
        Partial(None, ("count",)),
        *(Partial(column, tuple(dict.fromkeys(asked))) for column, asked in together.items()),
        *(Partial(column, ("count",), True) for column in each),
    )


def needs_values(aggregate: Aggregate) -> bool:
    """True if the aggregate needs every value."""
    return aggregate.distinct or aggregate.function == "median"


def value(aggregate: Aggregate, partial: Partial, table: PartialTable, rows: int, at: Places) -> Vector:
    """An aggregate's value in each of `rows` windows and groups; `at`: the row of each entry of the partial's
    table.
    """
    if aggregate.distinct:
        return Vector(np.bincount(at, minlength=rows))
    if aggregate.function == "count":
        counted = np.zeros(rows, np.int64)
        counted[at] = partial.measure(table, "count")
        return Vector(counted)
    if aggregate.function == "median":
        return _medians(table, rows, at)
    null = np.ones(rows, np.bool_)
    null[at] = False
    if aggregate.function in ("min", "max"):
        found = partial.measure(table, "least" if aggregate.function == "min" else "greatest")
        data = np.zeros(rows, found.dtype) if found.dtype.kind != "O" else np.full(rows, None, np.object_)
        data[at] = found
        return Vector(data, null if null.any() else None)
    totals: list[Any] = partial.measure(table, "total").tolist()
    assert aggregate.column is not None
    unit = 1 << SCALE if aggregate.column.type is Type.DOUBLE else 1
    given: list[Any] = [None] * rows
    if aggregate.function == "avg":
        counts: list[int] = partial.measure(table, "count").tolist()
        made: list[Any] = [quotient(t, unit * n) for t, n in zip(totals, counts, strict=True)]
    else:
        made = [quotient(t, unit) for t in totals] if unit > 1 else list(map(fitting, totals))
    for place, one in zip(at.tolist(), made, strict=True):
        given[place] = one
    return Vector.from_list(given, aggregate.type)


def _medians(table: PartialTable, rows: int, at: Places) -> Vector:
    """The median in each window and group: the mean of the two middle values; `table` has the values in
    order.
    """
    passed = np.cumsum(table.measures[0])
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    before = np.concatenate(([0], passed))[begins]
    count = np.add.reduceat(table.measures[0], begins) if len(begins) else np.empty(0, np.int64)
    values = table.keys[2]
    low = values[np.searchsorted(passed, before + (count - 1) // 2, side="right")]
    high = values[np.searchsorted(passed, before + count // 2, side="right")]
    data, null = np.zeros(rows, np.float64), np.ones(rows, np.bool_)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            both = low + high
        middle = np.where(np.isfinite(both), both / 2, low / 2 + high / 2)
    else:
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        middle = np.array([(a + b) / 2 for a, b in pairs], np.float64)
    data[at[begins]] = middle
    null[at[begins]] = False
    return Vector(data, null if null.any() else None)

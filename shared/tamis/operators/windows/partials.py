"""Partial aggregates of a column by pane and group, and the aggregates of windows computed from them.

There are three kinds. The first has the count of values, the exact sums of them and of their squares, the
least and the greatest value; only those that an aggregate needs are kept. The second has each value with the
number of its occurrences, for `median`, percentiles and `count(DISTINCT)`. The third has one value, for
`arg_min` and `arg_max`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.aggregates import Aggregate, needs_all_values
from tamis.expressions.exact.sums import (
    SCALE,
    SPREADS,
    fitting,
    interpolated,
    of_doubles,
    of_whole,
    quotient,
    spread,
    squares_of_doubles,
    squares_of_whole,
    units,
)
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Columns, Vector, dtype_of
from tamis.operators.aggregates.accumulators import EXACT_SUMS, MADE_OF, Measure
from tamis.operators.state import number_from_text, number_to_text
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.table import (
    Array,
    PartialTable,
    Places,
    concatenated,
    least_or_greatest,
    merged,
    runs,
)

_WAYS: dict[Measure, np.ufunc] = {
    "count": np.add,
    "total": np.add,
    "squares": np.add,
    "least": np.minimum,
    "greatest": np.maximum,
}


@dataclass(frozen=True)
class _Ranks:
    """The values of each window and group in order: `count` is how many there are. `places` are the windows
    and groups.
    """

    places: Places
    count: Places
    _values: Array
    _before: Places
    _passed: Places

    @staticmethod
    def of(table: PartialTable, at: Places) -> _Ranks:
        """The values of a table; `at`: the window and group of each of its rows, ascending."""
        passed = np.cumsum(table.measures[0])
        begins = np.flatnonzero(np.diff(at, prepend=-1))
        before = np.concatenate(([0], passed))[begins]
        count = np.add.reduceat(table.measures[0], begins) if len(begins) else np.empty(0, np.int64)
        return _Ranks(at[begins], count, table.keys[2], before, passed)

    def value(self, rank: Places) -> Array:
        """The value at a rank of each window and group, from 0."""
        return self._values[np.searchsorted(self._passed, self._before + rank, side="right")]


def medians(table: PartialTable, rows: int, at: Places) -> Vector:
    """The median in each window and group: the mean of the two middle values; `table` has the values in
    order.
    """
    ranks = _Ranks.of(table, at)
    low, high = ranks.value((ranks.count - 1) // 2), ranks.value(ranks.count // 2)
    data, null = np.zeros(rows, np.float64), np.ones(rows, np.bool_)
    if low.dtype.kind == "f":
        with np.errstate(over="ignore"):
            both = low + high
        middle = np.where(np.isfinite(both), both / 2, low / 2 + high / 2)
    else:
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        middle = np.array([(a + b) / 2 for a, b in pairs], np.float64)
    data[ranks.places] = middle
    null[ranks.places] = False
    return Vector(data, null if null.any() else None)


def percentiles(aggregate: Aggregate, table: PartialTable, rows: int, at: Places) -> Vector:
    """PERCENTILE_CONT or PERCENTILE_DISC in each window and group, as in SQL.

    Of n values with the ranks 0 to n - 1, the continuous one lies at the rank (n - 1) * fraction, between two
    values. The discrete one is the first value such that at least n * fraction values are up to it.
    """
    fraction, column = aggregate.fraction, aggregate.column
    assert fraction is not None
    assert column is not None
    ranks = _Ranks.of(table, at)
    above, below = fraction.numerator, fraction.denominator
    if aggregate.function == "percentile_disc":
        found = ranks.value(np.maximum(-(-ranks.count * above // below), 1) - 1)
        data, null = np.zeros(rows, dtype_of(column.type)), np.ones(rows, np.bool_)
        data[ranks.places], null[ranks.places] = found, False
        return Vector(data, null if null.any() else None)
    lower, share = np.divmod((ranks.count - 1) * above, below)
    low, high = ranks.value(lower), ranks.value(lower + (share > 0))
    double = column.type is Type.DOUBLE
    exact = (units(one).tolist() if double else one.tolist() for one in (low, high))
    given: list[float | None] = [None] * rows
    for place, a, b, part in zip(ranks.places.tolist(), *exact, share.tolist(), strict=True):
        given[place] = interpolated(a, b, Fraction(part, below), 1 << SCALE if double else 1)
    return Vector.from_list(given, Type.DOUBLE)


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
    or of each value separately (`each`). With `order` it has, in place of measures, the greatest or the least
    value of that column, and the column's value beside it; of several such values, the greatest or the least.
    """

    column: Column | None
    measures: tuple[Measure, ...]
    each: bool = False
    order: Column | None = None
    greatest: bool = False

    def merged(self, parts: Sequence[PartialTable]) -> PartialTable:
        """The tables of several batches or panes in one: a row for each combination of keys."""
        if self.order is not None:
            return least_or_greatest(parts, greatest=self.greatest)
        return merged(parts, tuple(_WAYS[one] for one in self.measures))

    def dtypes(self) -> tuple[list[np.dtype[Any]], list[np.dtype[Any]]]:
        """The types of keys and measures."""
        whole = np.dtype(np.int64)
        keys = [whole, whole]
        if self.each and self.column is not None:
            keys.append(whole if self.column.type is Type.VARCHAR else dtype_of(self.column.type))
        if self.order is not None and self.column is not None:
            return keys, [dtype_of(self.order.type), dtype_of(self.column.type)]
        return keys, [self._dtype(one) for one in self.measures]

    def _dtype(self, measure: Measure) -> np.dtype[Any]:
        if measure in ("least", "greatest") and self.column is not None:
            return dtype_of(self.column.type)
        return np.dtype(np.object_ if measure in EXACT_SUMS else np.int64)

    def empty(self) -> PartialTable:
        """A table without rows."""
        keys, measures = self.dtypes()
        return PartialTable(tuple(np.empty(0, k) for k in keys), tuple(np.empty(0, m) for m in measures))

    def of(self, batch: SortedBatch, taken: Columns, texts: DictionaryEncoder) -> PartialTable:
        """The table of a batch; `taken` has the values of its columns, and `texts` encodes texts."""
        if self.column is None:
            return self._together(batch, None)
        read = [taken[one.alias, one.name] for one in (self.column, self.order) if one is not None]
        for vector in read:
            if vector.null is not None:
                batch = batch.where(~vector.null)
        if not len(batch.order):
            return self.empty()
        values, *orders = (_values(vector, batch.order) for vector in read)
        if orders:
            return self.merged([PartialTable((batch.pane, batch.group), (*orders, values))])
        if not self.each:
            return self._together(batch, values)
        if self.column.type is Type.VARCHAR:
            values = texts.encode(values.tolist())
        ones = np.ones(len(values), np.int64)
        return self.merged([PartialTable((batch.pane, batch.group, values), (ones,))])

    def _together(self, batch: SortedBatch, values: Array | None) -> PartialTable:
        starts = batch.starts
        if not len(starts):
            return self.empty()
        measures: list[Array] = []
        for measure in self.measures:
            if measure == "count":
                measures.append(np.diff(np.append(starts, len(batch.pane))))
                continue
            assert values is not None
            double = values.dtype.kind == "f"
            if measure == "total":
                measures.append(of_doubles(values, starts) if double else of_whole(values, starts))
            elif measure == "squares":
                squares = squares_of_doubles if double else squares_of_whole
                measures.append(squares(values, starts))
            else:
                measures.append(_WAYS[measure].reduceat(values, starts))
        return PartialTable((batch.pane[starts], batch.group[starts]), tuple(measures))

    def added(self, table: PartialTable, new: PartialTable) -> PartialTable:
        """The table with a batch added; only the panes that the batch touches are sorted again."""
        first, last = new.keys[0][0], new.keys[0][-1]
        low, high = np.searchsorted(table.keys[0], first), np.searchsorted(table.keys[0], last, side="right")
        touched = self.merged([table.take(slice(int(low), int(high))), new])
        parts = [table.take(slice(0, int(low))), touched, table.take(slice(int(high), len(table)))]
        return concatenated(parts)

    def dump(self, table: PartialTable) -> list[Any]:
        """A table as JSON. Sums are text, because they may be larger than JSON's numbers."""
        keys = [key.tolist() for key in table.keys]
        if self.order is not None:
            return [keys, [one.tolist() for one in table.measures]]
        return [
            keys,
            [
                [number_to_text(total) for total in one.tolist()] if name in EXACT_SUMS else one.tolist()
                for name, one in zip(self.measures, table.measures, strict=True)
            ],
        ]

    def restored(self, dumped: list[Any]) -> PartialTable:
        """The table that `dump` has written."""
        keys, measures = dumped
        of_keys, of_measures = self.dtypes()
        names = self.measures if self.order is None else (None, None)
        read = [
            [number_from_text(total) for total in values] if name in EXACT_SUMS else values
            for name, values in zip(names, measures, strict=True)
        ]
        return PartialTable(
            tuple(np.array(values, kind) for values, kind in zip(keys, of_keys, strict=True)),
            tuple(np.array(values, kind) for values, kind in zip(read, of_measures, strict=True)),
        )

    def measure(self, table: PartialTable, name: Measure) -> Array:
        """One measure of a table of this kind."""
        return table.measures[self.measures.index(name)]


def _values(vector: Vector, order: Places) -> Array:
    """Values in an order; -0.0 becomes 0.0."""
    values = vector.data[order]
    return values + 0.0 if values.dtype.kind == "f" else values


def partial_of(aggregate: Aggregate) -> Partial:
    """The kind of the table from which an aggregate is computed, without its measures."""
    if aggregate.order is not None:
        return Partial(aggregate.column, (), False, aggregate.order, aggregate.function == "arg_max")
    return Partial(aggregate.column, (), needs_all_values(aggregate))


def partials(aggregates: Sequence[Aggregate]) -> tuple[Partial, ...]:
    """The partial aggregates that some aggregates need: first those of all tuples of a group, then those of
    each column.
    """
    together: dict[Column, list[Measure]] = {}
    others: dict[Partial, None] = {}
    for one in aggregates:
        if one.column is None:
            continue
        if one.order is not None:
            others[partial_of(one)] = None
        elif needs_all_values(one):
            others[replace(partial_of(one), measures=("count",))] = None
        else:
            together.setdefault(one.column, []).extend(MADE_OF[one.function])
    return (
        Partial(None, ("count",)),
        *(Partial(column, tuple(dict.fromkeys(asked))) for column, asked in together.items()),
        *others,
    )


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
        return medians(table, rows, at)
    if aggregate.fraction is not None:
        return percentiles(aggregate, table, rows, at)
    null = np.ones(rows, np.bool_)
    null[at] = False
    if aggregate.order is not None or aggregate.function in ("min", "max"):
        extreme: Measure = "least" if aggregate.function == "min" else "greatest"
        found = table.measures[1] if aggregate.order is not None else partial.measure(table, extreme)
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
    elif aggregate.function in SPREADS:
        read = (partial.measure(table, "count"), totals, partial.measure(table, "squares"))
        made = [spread(aggregate.function, int(n), t, q, unit) for n, t, q in zip(*read, strict=True)]
    else:
        made = [quotient(t, unit) for t in totals] if unit > 1 else list(map(fitting, totals))
    for place, one in zip(at.tolist(), made, strict=True):
        given[place] = one
    return Vector.from_list(given, aggregate.type)

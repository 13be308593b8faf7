"""Medians and percentiles of windows and groups, from tables that have each value with its count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tamis.evaluation.standing.window_aggregates.table import Array, PartialTable, Places
from tamis.expressions.exact.sums import SCALE, interpolated, units
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector, dtype_of
from tamis.query.model import Aggregate


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

"""Distinct values of one column in each group, for `count(DISTINCT)`, `median` and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.exact.sums import SCALE, interpolated, units
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector
from tamis.operators.aggregates.accumulators import Sums, fit, times, whole
from tamis.operators.aggregates.kernels import Integers, Ints, running_percentiles
from tamis.operators.row_store import Store, TextCodes, as_numbers
from tamis.operators.state import number_from_text, number_to_text
from tamis.operators.synopses.row_numbering import RowNumbering, firsts, grown

_NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Percentile:
    """A percentile, with its exact fraction. The continuous one of 1/2 is the median."""

    fraction: Fraction
    continuous: bool = True

    @staticmethod
    def of(aggregate: Aggregate) -> Percentile | None:
        """The percentile that an aggregate asks for; None for another aggregate."""
        if aggregate.function == "median":
            return Percentile(Fraction(1, 2))
        if aggregate.fraction is None:
            return None
        return Percentile(aggregate.fraction, aggregate.function == "percentile_cont")


@dataclass(frozen=True)
class ValueCounts:
    """The state of a group after each row: the number of distinct values and of all values, and for each
    percentile the numbers of the two values between which it lies (-1 for none).
    """

    count: Integers
    total: Integers
    between: Mapping[Percentile, tuple[Ints, Ints]]

    def take(self, at: Ints) -> ValueCounts:
        """Some rows."""
        between = {one: (low[at], high[at]) for one, (low, high) in self.between.items()}
        return ValueCounts(self.count[at], self.total[at], between)


class Values:
    """All values of a column that aren't NULL, by group; for percentiles also how often a group has each."""

    def __init__(self, column: Column, percentiles: Iterable[Percentile] = ()) -> None:
        self._type = column.type
        self._texts: TextCodes = {}
        self._numbers = RowNumbering(2)
        self._values = Store([column.type])
        self._group, self._code = _NONE, _NONE  # of each value
        self._counts, self._totals = Sums(), Sums()
        self._orders = {one: _Order(one) for one in percentiles}

    def __len__(self) -> int:
        return len(self._values)

    def grow(self, groups: int) -> None:
        """Make room."""
        self._counts.grow(groups)
        self._totals.grow(groups)
        for order in self._orders.values():
            order.grow_groups(groups)

    def counts(self, groups: int) -> Ints:
        """The numbers of values of the first groups."""
        return self._counts.values[:groups]

    def add(self, group: Ints, vector: Vector, weights: Integers) -> ValueCounts:
        """Add rows to groups one by one, each value `weights` times; returns the state of the group after
        each.
        """
        at = np.arange(len(group)) if vector.null is None else np.flatnonzero(~vector.null)
        known, own, before = vector.take(at), group[at], len(self)
        code = as_numbers(known, self._texts).data
        numbers = self._numbers.of(np.stack([own, code], axis=1))
        new = firsts(numbers, before)
        self._values.append([known.take(new)], len(new))
        self._group, self._code = grown(self._group, len(self)), grown(self._code, len(self))
        self._group[before : len(self)], self._code[before : len(self)] = own[new], code[new]
        begins, which = np.zeros(len(group), np.int64), np.full(len(group), -1, np.int64)
        begins[at[new]], which[at] = 1, numbers
        count = self._counts.add(group, begins)
        total = self._totals.add(group, np.where(which >= 0, weights, 0))
        code = self._code[: len(self)]
        between = {one: order.add(code, group, which, weights) for one, order in self._orders.items()}
        return ValueCounts(count, total, between)

    def percentile(self, asked: Percentile, counts: ValueCounts) -> Vector:
        """A percentile, rounded once; the discrete one is a value of the column."""
        low, high = counts.between[asked]
        some = np.flatnonzero(low >= 0)
        if not asked.continuous:
            values = self._values.take(0, np.maximum(low, 0)) if len(self) else None
            null = np.asarray(low < 0, np.bool_)
            if values is None:
                return Vector.nulls(self._type, len(low))
            return Vector(values.data, null if null.any() else None)
        unit = 1 << SCALE if self._type is Type.DOUBLE else 1
        given: list[float | None] = [None] * len(low)
        pairs = (self._exact(at[some]) for at in (low, high))
        totals = counts.total[some].tolist()
        for place, total, *ends in zip(some.tolist(), totals, *pairs, strict=True):
            share = (total - 1) * asked.fraction % 1
            given[place] = interpolated(ends[0], ends[1], share, unit)
        return Vector.from_list(given, Type.DOUBLE)

    def _exact(self, at: Ints) -> list[int]:
        data = self._values.take(0, at).data
        found: list[int] = (units(data) if self._type is Type.DOUBLE else data).tolist()
        return found

    def dumped(self) -> list[Any]:
        """As JSON: groups, values and, for percentiles, the number of times that each value occurs."""
        orders = list(self._orders.values())
        often = [number_to_text(one) for one in orders[0].amount[: len(self)].tolist()] if orders else []
        return [self._group[: len(self)].tolist(), *self._values.dumped(), often]

    def restore(self, dumped: list[Any]) -> None:
        """Restore the dumped values; there must be room for the groups."""
        groups, values, often = dumped
        weights = whole([int(number_from_text(text)) for text in often] or [1] * len(groups))
        self.add(np.array(groups, np.int64), Vector.from_list(values, self._type), weights)


class _Order:
    """The values of each group in order, with the one at a percentile."""

    def __init__(self, percentile: Percentile) -> None:
        fraction = percentile.fraction
        self._asked = fraction.numerator, fraction.denominator, percentile.continuous
        self.amount: Integers = _NONE
        self._lower, self._upper = _NONE, _NONE
        self._middle = _NONE
        self._below: Integers = _NONE
        self._total: Integers = _NONE

    def grow_groups(self, groups: int) -> None:
        self._middle = grown(self._middle, groups, fill=-1)
        self._below, self._total = grown(self._below, groups), grown(self._total, groups)

    def add(self, code: Ints, group: Ints, which: Ints, weights: Integers) -> tuple[Ints, Ints]:
        self.amount = grown(self.amount, len(code))
        self._lower = grown(self._lower, len(code), fill=-1)
        self._upper = grown(self._upper, len(code), fill=-1)
        run: Callable[..., None] = running_percentiles
        # The kernel multiplies ranks by the numerator.
        factor = np.array([max(self._asked[0], 1)])
        if not fit(times(self._total[group], factor), times(weights, factor)):
            run = running_percentiles.py_func
            self.amount, self._below = self.amount.astype(np.object_), self._below.astype(np.object_)
            self._total, weights = self._total.astype(np.object_), weights.astype(np.object_)
        low, high = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        values = (code, self.amount, self._lower, self._upper)
        run(*self._asked, *values, self._middle, self._below, self._total, group, which, weights, low, high)
        return low, high

"""Distinct values of one column in each group, for `count(DISTINCT)` and `median`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.bounded.synopses.growable_arrays import grown
from tamis.bounded.synopses.row_numbering import RowNumbering, firsts
from tamis.evaluation.standing.aggregates.kernels import Integers, Ints, running_medians
from tamis.evaluation.standing.aggregates.running import Sums, fit, whole
from tamis.evaluation.standing.aggregates.sums import SCALE, quotient, units
from tamis.evaluation.standing.row_store import Store
from tamis.evaluation.standing.state import number_from_text, number_to_text
from tamis.evaluation.standing.value_numbers import TextCodes, as_numbers
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector

_NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class ValueCounts:
    """The state of a group after each row: number of distinct values, and the two middle values (-1 for
    none).
    """

    count: Integers
    low: Ints
    high: Ints

    def take(self, at: Ints) -> ValueCounts:
        """Some rows."""
        return ValueCounts(self.count[at], self.low[at], self.high[at])


class Values:
    """All values of a column that aren't NULL, by group; for `median` also how often the group has each."""

    def __init__(self, column: Column, *, median: bool) -> None:
        self._type, self._median = column.type, median
        self._texts: TextCodes = {}
        self._numbers = RowNumbering(2)
        self._values = Store([column.type])
        self._group, self._code = _NONE, _NONE  # of each value
        self._counts = Sums()
        self._order = _Order()

    def __len__(self) -> int:
        return len(self._values)

    def grow(self, groups: int) -> None:
        """Make room."""
        self._counts.grow(groups)
        self._order.grow_groups(groups)

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
        if not self._median:
            return ValueCounts(count, which, which)
        return ValueCounts(count, *self._order.add(self._code[: len(self)], group, which, weights))

    def median(self, counts: ValueCounts) -> Vector:
        """The medians: the mean of the two middle values."""
        some = np.flatnonzero(counts.low >= 0)
        unit = 2 << SCALE if self._type is Type.DOUBLE else 2
        given: list[float | None] = [None] * len(counts.low)
        pairs = (self._exact(at[some]) for at in (counts.low, counts.high))
        for place, low, high in zip(some.tolist(), *pairs, strict=True):
            given[place] = quotient(low + high, unit)
        return Vector.from_list(given, Type.DOUBLE)

    def _exact(self, at: Ints) -> list[int]:
        data = self._values.take(0, at).data
        found: list[int] = (units(data) if self._type is Type.DOUBLE else data).tolist()
        return found

    def dumped(self) -> list[Any]:
        """As JSON: groups, values and, for medians, the number of times that each value occurs."""
        often = (
            [number_to_text(one) for one in self._order.amount[: len(self)].tolist()] if self._median else []
        )
        return [self._group[: len(self)].tolist(), *self._values.dumped(), often]

    def restore(self, dumped: list[Any]) -> None:
        """Restore the dumped values; there must be room for the groups."""
        groups, values, often = dumped
        weights = whole([int(number_from_text(text)) for text in often] or [1] * len(groups))
        self.add(np.array(groups, np.int64), Vector.from_list(values, self._type), weights)


class _Order:
    """The values of each group in order, with the middle one."""

    def __init__(self) -> None:
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
        run: Callable[..., None] = running_medians
        if not fit(self._total[group], weights):
            run = running_medians.py_func
            self.amount, self._below = self.amount.astype(np.object_), self._below.astype(np.object_)
            self._total, weights = self._total.astype(np.object_), weights.astype(np.object_)
        low, high = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        values = (code, self.amount, self._lower, self._upper)
        run(*values, self._middle, self._below, self._total, group, which, weights, low, high)
        return low, high

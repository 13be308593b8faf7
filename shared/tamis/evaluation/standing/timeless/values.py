"""The values of one column in each group, for `count(DISTINCT)` and `median`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.bounded.evaluate.growing import grown
from tamis.bounded.evaluate.numbering import Numbering, firsts
from tamis.evaluation.standing.sums import SCALE, quotient, units
from tamis.evaluation.standing.timeless.kernels import Ints, Whole, middles
from tamis.evaluation.standing.timeless.running import Sums, fit, whole
from tamis.evaluation.standing.timeless.sifted import Codes, as_numbers
from tamis.evaluation.standing.timeless.state import number_of, number_text
from tamis.evaluation.standing.timeless.store import Store
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector

_NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Told:
    """What a group has after each row: how many values, and which two are in the middle, -1 for none."""

    count: Whole
    low: Ints
    high: Ints

    def take(self, at: Ints) -> Told:
        """Some rows."""
        return Told(self.count[at], self.low[at], self.high[at])


class Values:
    """All values of a column that aren't NULL, by group; where a `median` is asked for, with how often the
    group has each.
    """

    def __init__(self, column: Column, *, median: bool) -> None:
        self._type, self._median = column.type, median
        self._texts: Codes = {}
        self._numbers = Numbering(2)
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
        """How many values the first groups have."""
        return self._counts.values[:groups]

    def added(self, group: Ints, vector: Vector, weights: Whole) -> Told:
        """Give rows to groups one by one, each value as often as said; what its group has after each."""
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
        count = self._counts.added(group, begins)
        if not self._median:
            return Told(count, which, which)
        return Told(count, *self._order.added(self._code[: len(self)], group, which, weights))

    def median(self, told: Told) -> Vector:
        """The mean of the two middle values."""
        some = np.flatnonzero(told.low >= 0)
        unit = 2 << SCALE if self._type is Type.DOUBLE else 2
        given: list[float | None] = [None] * len(told.low)
        pairs = (self._exact(at[some]) for at in (told.low, told.high))
        for place, low, high in zip(some.tolist(), *pairs, strict=True):
            given[place] = quotient(low + high, unit)
        return Vector.from_list(given, Type.DOUBLE)

    def _exact(self, at: Ints) -> list[int]:
        data = self._values.take(0, at).data
        found: list[int] = (units(data) if self._type is Type.DOUBLE else data).tolist()
        return found

    def dumped(self) -> list[Any]:
        """As JSON: groups, values and, for medians, how often."""
        often = [number_text(one) for one in self._order.amount[: len(self)].tolist()] if self._median else []
        return [self._group[: len(self)].tolist(), *self._values.dumped(), often]

    def restore(self, dumped: list[Any]) -> None:
        """Take back the values of groups that there is room for."""
        groups, values, often = dumped
        weights = whole([int(number_of(text)) for text in often] or [1] * len(groups))
        self.added(np.array(groups, np.int64), Vector.from_list(values, self._type), weights)


class _Order:
    """The values of each group in their order, with its middle."""

    def __init__(self) -> None:
        self.amount: Whole = _NONE
        self._lower, self._upper = _NONE, _NONE
        self._middle = _NONE
        self._below: Whole = _NONE
        self._total: Whole = _NONE

    def grow_groups(self, groups: int) -> None:
        self._middle = grown(self._middle, groups, fill=-1)
        self._below, self._total = grown(self._below, groups), grown(self._total, groups)

    def added(self, code: Ints, group: Ints, which: Ints, weights: Whole) -> tuple[Ints, Ints]:
        self.amount = grown(self.amount, len(code))
        self._lower = grown(self._lower, len(code), fill=-1)
        self._upper = grown(self._upper, len(code), fill=-1)
        run: Callable[..., None] = middles
        if not fit(self._total[group], weights):
            run = middles.py_func
            self.amount, self._below = self.amount.astype(np.object_), self._below.astype(np.object_)
            self._total, weights = self._total.astype(np.object_), weights.astype(np.object_)
        low, high = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        values = (code, self.amount, self._lower, self._upper)
        run(*values, self._middle, self._below, self._total, group, which, weights, low, high)
        return low, high

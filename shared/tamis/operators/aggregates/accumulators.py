"""Accumulators of counts, sums and extremes of one column, for single tuples, buckets and groups.

Sums are exact, also of DOUBLE: they are integers in units of 2^-SCALE, rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.exact.sums import SCALE, SPREADS, fitting, quotient, spread, units
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector, dtype_of
from tamis.operators.aggregates.kernels import (
    Integers,
    Ints,
    Mask,
    running_extremes,
    running_sums,
)
from tamis.operators.state import number_from_text, number_to_text
from tamis.operators.synopses.row_numbering import grown

# `squares` is the sum of the squares.
Measure = Literal["count", "total", "squares", "least", "greatest"]
EXACT_SUMS: tuple[Measure, ...] = ("total", "squares")

_SPREAD: tuple[Measure, ...] = ("count", "total", "squares")
# `median`, percentiles and `count(DISTINCT)` need the values themselves.
MADE_OF: Mapping[str, tuple[Measure, ...]] = {
    "count": ("count",),
    "sum": ("total",),
    "avg": ("count", "total"),
    "var_pop": _SPREAD,
    "var_samp": _SPREAD,
    "stddev_pop": _SPREAD,
    "stddev_samp": _SPREAD,
    "min": ("least",),
    "max": ("greatest",),
}

# Up to here sums of absolute values in DOUBLE are nearly exact, and the integers that they bound fit in 64
# bits.
_SAFE = 2.0**62


def times(numbers: Integers, factors: Integers) -> Integers:
    """Products, row by row.

    >>> times(np.array([2**40]), np.array([2**40])).tolist() == [2**80]
    True
    """
    if _exact(numbers) or _exact(factors) or _size(numbers, np.max) * _size(factors, np.max) > _SAFE:
        return np.asarray(numbers.astype(np.object_) * factors.astype(np.object_), np.object_)
    return np.asarray(numbers * factors)


def whole(numbers: list[int]) -> Integers:
    """Integers as an array."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, np.object_)


def fit(sums: Integers, new: Integers) -> bool:
    """True if the sums fit in 64 bits after any of the numbers are added."""
    return not (_exact(sums) or _exact(new)) and _size(sums, np.max) + _size(new, np.sum) <= _SAFE


def _exact(numbers: Integers) -> bool:
    return numbers.dtype == np.object_


def _size(numbers: Integers, most: Any) -> float:
    return float(most(np.abs(numbers.astype(np.float64)), initial=0.0))


class Sums:
    """An integer for each item, initially 0."""

    def __init__(self) -> None:
        self.values: Integers = np.zeros(0, np.int64)

    def grow(self, items: int) -> None:
        """Make room."""
        self.values = grown(self.values, items)

    def add(self, at: Ints, new: Integers) -> Integers:
        """Add numbers to items one by one; returns the sum of the item after each."""
        run: Callable[..., None] = running_sums
        if not fit(self.values[at], new):
            run = running_sums.py_func
            self.values, new = self.values.astype(np.object_), new.astype(np.object_)
        after = np.empty(len(at), self.values.dtype)
        run(self.values, at, new, after)
        return after


class Extremes:
    """The greatest or the least value of each item."""

    def __init__(self, type_: Type, *, greatest: bool) -> None:
        dtype = np.dtype(np.int64) if type_ is Type.BOOLEAN else dtype_of(type_)
        self._greatest = greatest
        self._run: Callable[..., None] = running_extremes.py_func if dtype == np.object_ else running_extremes
        self.values: NDArray[Any] = np.zeros(0, dtype)
        self.known: Mask = np.zeros(0, np.bool_)

    def grow(self, items: int) -> None:
        """Make room."""
        self.values, self.known = grown(self.values, items), grown(self.known, items)

    def add(self, at: Ints, new: NDArray[Any], some: Mask) -> NDArray[Any]:
        """Take values of items one by one, those in the mask `some`; returns the extreme of the item after
        each row, which is undefined before the item has a value.
        """
        after = np.zeros(len(at), self.values.dtype)
        self._run(self.values, self.known, at, new, some, self._greatest, after)
        return after


def measures_of(column: Column, aggregates: Sequence[Aggregate]) -> tuple[Measure, ...]:
    """The partial aggregates of a column that its aggregates need; the first is the count."""
    asked = [one for one in aggregates if one.column == column and not one.distinct]
    return tuple(dict.fromkeys(("count", *(m for one in asked for m in MADE_OF.get(one.function, ())))))


@dataclass(frozen=True)
class PartialAggregates:
    """Partial aggregates in columns, row by row: count of values that aren't NULL, sum, least and greatest
    value.

    If the count is 0, the other values are undefined.
    """

    measures: Mapping[Measure, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.measures["count"])

    @staticmethod
    def of(vector: Vector, asked: Sequence[Measure]) -> PartialAggregates:
        """The partial aggregates of single values."""
        data = vector.data.astype(np.int64) if vector.data.dtype == np.bool_ else vector.data
        null = np.zeros(len(data), np.bool_) if vector.null is None else vector.null
        made: dict[Measure, NDArray[Any]] = {"count": (~null).astype(np.int64)}
        for one in asked:
            if one in EXACT_SUMS:
                known = data if vector.null is None else np.where(null, 0, data)
                exact = units(known.astype(np.float64)) if data.dtype == np.float64 else known
                made[one] = exact if one == "total" else times(exact, exact)
            elif one != "count":
                made[one] = data
        return PartialAggregates(made)

    @staticmethod
    def concat(parts: Sequence[PartialAggregates]) -> PartialAggregates:
        """The rows of all parts in order; at least one part, all with the same measures."""
        return PartialAggregates(
            {one: np.concatenate([part.measures[one] for part in parts]) for one in parts[0].measures}
        )

    def take(self, at: Ints) -> PartialAggregates:
        """Some rows."""
        return PartialAggregates({name: one[at] for name, one in self.measures.items()})

    def times(self, factors: Integers) -> PartialAggregates:
        """The partial aggregates with all values of a row repeated by its factor."""
        sums: tuple[Measure, ...] = ("count", *EXACT_SUMS)
        added = {one: times(self.measures[one], factors) for one in sums if one in self.measures}
        return PartialAggregates({**self.measures, **added})

    def value(self, aggregate: Aggregate) -> Vector:
        """An aggregate of each row's values. The aggregate must need only measures that exist here."""
        assert aggregate.column is not None
        count = self.measures["count"]
        null = np.asarray(count == 0, np.bool_)
        match aggregate.function:
            case "count":
                return bigint(count)
            case "min":
                return _extreme(self.measures["least"], null, aggregate.type)
            case "max":
                return _extreme(self.measures["greatest"], null, aggregate.type)
        total = self.measures["total"]
        if aggregate.function == "sum" and aggregate.type is not Type.DOUBLE:
            return bigint(total, null)
        unit = 1 << SCALE if aggregate.column.type is Type.DOUBLE else 1
        if aggregate.function in SPREADS:
            sums = zip(count.tolist(), total.tolist(), self.measures["squares"].tolist(), strict=True)
            spreads = [spread(aggregate.function, *one, unit) if one[0] else None for one in sums]
            return Vector.from_list(spreads, Type.DOUBLE)
        shares = count.tolist() if aggregate.function == "avg" else [1] * len(null)
        given = [
            None if gone else quotient(sum_, unit * share)
            for gone, sum_, share in zip(null.tolist(), total.tolist(), shares, strict=True)
        ]
        return Vector.from_list(given, aggregate.type)


class Accumulators:
    """Accumulators of a column, one for each item (bucket or group)."""

    def __init__(self, column: Column, asked: Sequence[Measure]) -> None:
        self._column = column
        self._sums: dict[Measure, Sums] = {one: Sums() for one in asked if one in ("count", *EXACT_SUMS)}
        self._extremes: dict[Measure, Extremes] = {
            one: Extremes(column.type, greatest=one == "greatest")
            for one in asked
            if one in ("least", "greatest")
        }

    def grow(self, items: int) -> None:
        """Make room."""
        for total in self._sums.values():
            total.grow(items)
        for extreme in self._extremes.values():
            extreme.grow(items)

    def take(self, items: Ints) -> PartialAggregates:
        """The current partial aggregates of some items."""
        aggregates: dict[Measure, NDArray[Any]] = {n: one.values[items] for n, one in self._sums.items()}
        aggregates.update({n: one.values[items] for n, one in self._extremes.items()})
        return PartialAggregates(aggregates)

    def add(self, items: Ints, new: PartialAggregates) -> PartialAggregates:
        """Add rows to items one by one; returns the partial aggregates of the item after each."""
        some = np.asarray(new.measures["count"] != 0, np.bool_)
        after: dict[Measure, NDArray[Any]] = {
            name: one.add(items, new.measures[name]) for name, one in self._sums.items()
        }
        for name, extreme in self._extremes.items():
            after[name] = extreme.add(items, new.measures[name], some)
        return PartialAggregates(after)

    def dumped(self, items: int) -> dict[str, list[Any]]:
        """The first items, as JSON."""
        found: dict[str, list[Any]] = {
            name: [_text(one, self._unit(name)) for one in total.values[:items].tolist()]
            for name, total in self._sums.items()
        }
        for name, extreme in self._extremes.items():
            found[name] = extreme.values[:items].tolist()
        return found

    def _unit(self, name: Measure) -> int:
        if name not in EXACT_SUMS or self._column.type is not Type.DOUBLE:
            return 1
        return 1 << (SCALE if name == "total" else 2 * SCALE)

    def restore(self, dumped: Mapping[str, list[Any]]) -> None:
        """Restore the dumped accumulators of all items."""
        known = np.array([text != "0" for text in dumped["count"]], np.bool_)
        for name, total in self._sums.items():
            total.values = whole([int(number_from_text(text) * self._unit(name)) for text in dumped[name]])
        for name, extreme in self._extremes.items():
            extreme.values, extreme.known = np.array(dumped[name], extreme.values.dtype), known


def _text(number: int, unit: int) -> str:
    return number_to_text(number if unit == 1 else Fraction(number, unit))


def bigint(numbers: Integers, null: Mask | None = None) -> Vector:
    """Counts or sums, NULL beyond 64 bits."""
    gone = np.zeros(len(numbers), np.bool_) if null is None else null
    if numbers.dtype == np.object_:
        fit = [fitting(one) for one in numbers.tolist()]
        gone = gone | np.array([one is None for one in fit], np.bool_)
        numbers = np.array([one or 0 for one in fit], np.int64)
    return Vector(numbers, gone if gone.any() else None)


def _extreme(values: NDArray[Any], null: Mask, type_: Type) -> Vector:
    if type_ is Type.VARCHAR:
        values = np.where(null, np.array(None), values)
    return Vector(values.astype(dtype_of(type_), copy=False), null if null.any() else None)

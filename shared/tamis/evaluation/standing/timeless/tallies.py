"""Counts, sums and extremes of one column, in columns: of single tuples, of buckets and of groups.

Sums are exact, of DOUBLE too: whole numbers in units of 2^-SCALE, rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.measures import MADE_OF, Measure
from tamis.evaluation.standing.sums import SCALE, fitting, quotient, units
from tamis.evaluation.standing.timeless.kernels import Ints, Mask, Whole
from tamis.evaluation.standing.timeless.running import Extremes, Sums, times, whole
from tamis.evaluation.standing.timeless.state import number_of, number_text
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector, dtype_of
from tamis.query.model import Aggregate


def measures_of(column: Column, aggregates: Sequence[Aggregate]) -> tuple[Measure, ...]:
    """What aggregates need of a column: first how many values there are."""
    asked = [one for one in aggregates if one.column == column and not one.distinct]
    return tuple(dict.fromkeys(("count", *(m for one in asked for m in MADE_OF.get(one.function, ())))))


@dataclass(frozen=True)
class Tallied:
    """Row by row how many values there are that aren't NULL, their sum, the least and the greatest; what
    there are none of says nothing.
    """

    measures: Mapping[Measure, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.measures["count"])

    @staticmethod
    def of(vector: Vector, asked: Sequence[Measure]) -> Tallied:
        """Of single values."""
        data = vector.data.astype(np.int64) if vector.data.dtype == np.bool_ else vector.data
        null = np.zeros(len(data), np.bool_) if vector.null is None else vector.null
        made: dict[Measure, NDArray[Any]] = {"count": (~null).astype(np.int64)}
        for one in asked:
            if one == "total":
                known = data if vector.null is None else np.where(null, 0, data)
                made[one] = units(known.astype(np.float64)) if data.dtype == np.float64 else known
            elif one != "count":
                made[one] = data
        return Tallied(made)

    @staticmethod
    def concat(parts: Sequence[Tallied]) -> Tallied:
        """One after the other: at least one, all with the same measures."""
        return Tallied(
            {one: np.concatenate([part.measures[one] for part in parts]) for one in parts[0].measures}
        )

    def take(self, at: Ints) -> Tallied:
        """Some rows."""
        return Tallied({name: one[at] for name, one in self.measures.items()})

    def times(self, factors: Whole) -> Tallied:
        """With all values of a row as often as said."""
        sums: tuple[Measure, ...] = ("count", "total")
        added = {one: times(self.measures[one], factors) for one in sums if one in self.measures}
        return Tallied({**self.measures, **added})

    def value(self, aggregate: Aggregate) -> Vector:
        """An aggregate of each row's values, that needs no more than these measures."""
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
        shares = count.tolist() if aggregate.function == "avg" else [1] * len(null)
        given = [
            None if gone else quotient(sum_, unit * share)
            for gone, sum_, share in zip(null.tolist(), total.tolist(), shares, strict=True)
        ]
        return Vector.from_list(given, aggregate.type)


class Tallies:
    """What is kept of a column, for each thing."""

    def __init__(self, column: Column, asked: Sequence[Measure]) -> None:
        self._column = column
        self._sums: dict[Measure, Sums] = {one: Sums() for one in asked if one in ("count", "total")}
        self._extremes: dict[Measure, Extremes] = {
            one: Extremes(column.type, greatest=one == "greatest")
            for one in asked
            if one in ("least", "greatest")
        }

    def grow(self, things: int) -> None:
        """Make room."""
        for total in self._sums.values():
            total.grow(things)
        for extreme in self._extremes.values():
            extreme.grow(things)

    def take(self, things: Ints) -> Tallied:
        """What some have now."""
        found: dict[Measure, NDArray[Any]] = {n: one.values[things] for n, one in self._sums.items()}
        found.update({n: one.values[things] for n, one in self._extremes.items()})
        return Tallied(found)

    def added(self, things: Ints, new: Tallied) -> Tallied:
        """Give rows to things one by one; what its thing has after each."""
        some = np.asarray(new.measures["count"] != 0, np.bool_)
        after: dict[Measure, NDArray[Any]] = {
            name: one.added(things, new.measures[name]) for name, one in self._sums.items()
        }
        for name, extreme in self._extremes.items():
            after[name] = extreme.outdone(things, new.measures[name], some)
        return Tallied(after)

    def dumped(self, things: int) -> dict[str, list[Any]]:
        """The first things, as JSON."""
        found: dict[str, list[Any]] = {
            name: [_text(one, self._unit(name)) for one in total.values[:things].tolist()]
            for name, total in self._sums.items()
        }
        for name, extreme in self._extremes.items():
            found[name] = extreme.values[:things].tolist()
        return found

    def _unit(self, name: Measure) -> int:
        return 1 << SCALE if name == "total" and self._column.type is Type.DOUBLE else 1

    def restore(self, dumped: Mapping[str, list[Any]]) -> None:
        """Take back what was kept of all things."""
        known = np.array([text != "0" for text in dumped["count"]], np.bool_)
        for name, total in self._sums.items():
            total.values = whole([int(number_of(text) * self._unit(name)) for text in dumped[name]])
        for name, extreme in self._extremes.items():
            extreme.values, extreme.known = np.array(dumped[name], extreme.values.dtype), known


def _text(number: int, unit: int) -> str:
    return number_text(number if unit == 1 else Fraction(number, unit))


def bigint(numbers: Whole, null: Mask | None = None) -> Vector:
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

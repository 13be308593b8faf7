"""The columns of watches over a batch of readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.watches import AnyWatch, Watch, WindowFunction
from tamis.expressions.vectors import Mask, Vector
from tamis.similarity.sliding_transform import Floats, Int64s

# A scale or shift of greater magnitude is NULL. Then the result of any arithmetic with it is finite.
GREATEST_FIT = 1e100


@dataclass(frozen=True)
class WatchedColumns:
    """The nearest patterns of a watch in a batch of `count` readings.

    `rows` are the readings that end a matching window; they ascend. The other arrays have an item for each of
    these. `pattern` is the place of the nearest pattern in `watch.patterns`.
    """

    watch: Watch
    count: int
    rows: Int64s
    pattern: Int64s
    distance: Floats
    scale: Floats
    shift: Floats

    def vectors(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Distance, scale, shift and pattern for all readings of the batch, in the order of `Watch.columns`.
        They are NULL where no pattern matches.
        """
        none = np.ones(self.count, np.bool_)
        none[self.rows] = False
        names = np.array([pattern.name for pattern in self.watch.patterns], np.object_)
        found = np.full(self.count, None, np.object_)
        found[self.rows] = names[self.pattern]
        return (
            self._spread(self.distance, none),
            self._fit(self.scale, none),
            self._fit(self.shift, none),
            _vector(found, none),
        )

    def _spread(self, values: Floats, null: Mask) -> Vector:
        data = np.zeros(self.count)
        data[self.rows] = values
        return _vector(data, null)

    def _fit(self, values: Floats, none: Mask) -> Vector:
        null = none.copy()
        null[self.rows] = ~(np.abs(values) <= GREATEST_FIT)
        return self._spread(values, null)


@dataclass(frozen=True)
class WindowValues:
    """The values of a window function in a batch of readings."""

    watch: WindowFunction
    values: Vector

    def vectors(self) -> tuple[Vector]:
        """The column, as `WindowFunction.columns` has it."""
        return (self.values,)


AddedColumns = WatchedColumns | WindowValues


def no_values(watch: AnyWatch, count: int) -> AddedColumns:
    """The columns of `count` late readings: they match no pattern, and their window functions are NULL."""
    if isinstance(watch, WindowFunction):
        return WindowValues(watch, Vector.nulls(watch.type, count))
    none, nothing = np.empty(0, np.int64), np.empty(0)
    return WatchedColumns(watch, count, none, none, nothing, nothing, nothing)


def _vector(data: NDArray[Any], null: Mask) -> Vector:
    return Vector(data, null if null.any() else None)

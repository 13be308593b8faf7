"""Store of rows in columns that grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.synopses.row_numbering import grown
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, Vector, dtype_of


class Store:
    """Rows of columns of some types, by their number."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._data: list[NDArray[Any]] = [np.zeros(0, dtype_of(one)) for one in types]
        self._null: list[Mask] = [np.zeros(0, np.bool_) for _ in types]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def grow(self, rows: int) -> None:
        """Grow to this number of rows; new rows are undefined."""
        self._data = [grown(one, rows) for one in self._data]
        self._null = [grown(one, rows) for one in self._null]
        self._count = rows

    def put(self, at: NDArray[np.int64] | slice, vectors: Sequence[Vector]) -> None:
        """Write rows."""
        for data, null, vector in zip(self._data, self._null, vectors, strict=True):
            data[at] = vector.data
            null[at] = False if vector.null is None else vector.null

    def append(self, vectors: Sequence[Vector], rows: int) -> None:
        """Add rows at the end."""
        before = self._count
        self.grow(before + rows)
        self.put(slice(before, before + rows), vectors)

    def take(self, column: int, at: NDArray[np.int64] | slice) -> Vector:
        """Some values of a column."""
        null = self._null[column][at]
        return Vector(self._data[column][at], null if null.any() else None)

    def all(self) -> list[Vector]:
        """All columns."""
        return [self.take(column, slice(0, self._count)) for column in range(len(self._types))]

    def dumped(self) -> list[list[Any]]:
        """All columns as JSON."""
        return [one.to_list() for one in self.all()]

    def restore(self, dumped: Sequence[Sequence[Any]], rows: int) -> None:
        """Restore all dumped columns."""
        self.grow(rows)
        vectors = [Vector.from_list(one, kind) for one, kind in zip(dumped, self._types, strict=True)]
        self.put(slice(0, rows), vectors)

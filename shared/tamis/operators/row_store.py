"""Rows and tuples that standing queries keep in columns, and their values as whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.double_order import numbers_of
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, Vector, dtype_of
from tamis.operators.synopses.columns import Column
from tamis.operators.synopses.row_numbering import grown
from tamis.plan.nodes import Scan

Row = tuple[object, ...]

Ints = NDArray[np.int64]

TextCodes = dict[Any, int]


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


class DistinctRows:
    """The rows that a query with DISTINCT has already given, by their values in SELECT."""

    def __init__(self) -> None:
        self.rows: dict[Row, None] = {}

    def new(self, columns: Sequence[Vector]) -> np.ndarray:
        """The positions of rows that weren't given before, each once. From now on they count as given."""
        positions = []
        for position, row in enumerate(zip(*(column.to_list() for column in columns), strict=True)):
            if row not in self.rows:
                self.rows[row] = None
                positions.append(position)
        return np.array(positions, np.int64)

    def dumped(self) -> list[Row]:
        """The rows as JSON."""
        return list(self.rows)

    def restore(self, dumped: Sequence[Sequence[object]]) -> None:
        """Restore dumped rows."""
        self.rows = dict.fromkeys(map(tuple, dumped))


class KeptSource:
    """The tuples of a scan, with the columns that are kept of them."""

    def __init__(self, scan: Scan) -> None:
        self.alias, self.stream = scan.alias, scan.stream
        self._filter, self._time = scan.filter, scan.time
        self.names = [name for name, _ in scan.columns]
        self.types = [kind for _, kind in scan.columns]

    def passing(self, batch: Mapping[str, Vector], rows: int) -> tuple[Mask, Ints]:
        """The mask of the tuples that meet all conditions on this source, and the times of all tuples."""
        read = {(self.alias, name): one for name, one in batch.items()}
        keep = np.ones(rows, np.bool_)
        for condition in self._filter:
            keep &= holds(condition, read, rows)
        return keep, np.asarray(batch[self._time].data if rows else (), np.int64)

    def nothing(self) -> dict[tuple[str, str], Vector]:
        """The columns without rows."""
        pairs = zip(self.names, self.types, strict=True)
        return {(self.alias, name): Vector.from_list([], kind) for name, kind in pairs}

    def form(self) -> list[object]:
        """The form that a state must fit."""
        return [self.alias, *([name, str(kind)] for name, kind in zip(self.names, self.types, strict=True))]


class WaitingTuples:
    """Tuples with their times, in the order of arrival. `types` are those of their columns."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._times: list[Ints] = []
        self._columns: list[list[Vector]] = []  # of each batch

    def __len__(self) -> int:
        return sum(map(len, self._times))

    def add(self, times: Ints, columns: Sequence[Vector]) -> None:
        """Add tuples."""
        if len(times):
            self._times.append(times)
            self._columns.append(list(columns))

    def remove_before(self, end: int) -> tuple[Ints, list[Vector]]:
        """Remove and return the tuples before a time, in the order of arrival."""
        times, columns = self._all()
        ready = times < end
        self._times, self._columns = [], []
        if ready.all():
            return times, columns
        self.add(times[~ready], [one.take(~ready) for one in columns])
        return times[ready], [one.take(ready) for one in columns]

    def between(self, first: int, last: int) -> tuple[Ints, list[Vector]]:
        """The tuples with times from `first` to `last`, in the order of arrival."""
        times, columns = self._all()
        inside = (times >= first) & (times <= last)
        if inside.all():
            return times, columns
        return times[inside], [one.take(inside) for one in columns]

    def dumped(self) -> list[Any]:
        """All tuples as JSON."""
        times, columns = self._all()
        return [times.tolist(), [one.to_list() for one in columns]]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore the dumped tuples."""
        times, columns = dumped
        vectors = [Vector.from_list(one, kind) for one, kind in zip(columns, self._types, strict=True)]
        self.add(np.array(times, np.int64), vectors)

    def _all(self) -> tuple[Ints, list[Vector]]:
        if not self._times:
            return np.zeros(0, np.int64), [Vector.from_list([], kind) for kind in self._types]
        columns = [Vector.concat(list(parts)) for parts in zip(*self._columns, strict=True)]
        return np.concatenate(self._times), columns


def as_numbers(vector: Vector, codes: TextCodes) -> Column:
    """A column as whole numbers in the order of its values. Texts have no order here: they get codes, and new
    texts are added to `codes`.
    """
    if vector.data.dtype == np.object_:
        coded = [codes.setdefault(text, len(codes)) for text in vector.data.tolist()]
        return Column(np.array(coded, np.int64), vector.null)
    if vector.data.dtype == np.float64:
        return Column(numbers_of(vector.data), vector.null)
    return Column(vector.data.astype(np.int64, copy=False), vector.null)

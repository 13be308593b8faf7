"""Tuples of one source in columns that wait until a time has passed them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector

Ints = NDArray[np.int64]


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

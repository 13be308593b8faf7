"""Table of partial aggregates in columns: one row for each combination of keys, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Mask

Array = NDArray[Any]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class PartialTable:
    """`keys` and `measures` are columns of one length. The first key is a pane or a window, the second a
    group.
    """

    keys: tuple[Array, ...]
    measures: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.keys[0])

    def take(self, at: Places | Mask | slice) -> PartialTable:
        """Some of its rows."""
        return PartialTable(tuple(key[at] for key in self.keys), tuple(one[at] for one in self.measures))

    def with_keys(self, *keys: Array) -> PartialTable:
        """The table with its first keys replaced."""
        return PartialTable((*keys, *self.keys[len(keys) :]), self.measures)


def runs(keys: Sequence[Array], count: int | None = None) -> tuple[Places, Places]:
    """The order of the rows by all keys, and the indexes in it where each run of equal keys begins. With
    `count`, only that many keys make a run.
    """
    order = np.lexsort(tuple(reversed(keys)))
    if not len(order):
        return order, order
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for key in keys[:count]:
        placed = key[order]
        new[1:] |= placed[1:] != placed[:-1]
    return order, np.flatnonzero(new)


def concatenated(parts: Sequence[PartialTable]) -> PartialTable:
    """The rows of all parts, which have the same columns."""
    keys = tuple(np.concatenate([part.keys[i] for part in parts]) for i in range(len(parts[0].keys)))
    number = len(parts[0].measures)
    return PartialTable(
        keys, tuple(np.concatenate([part.measures[i] for part in parts]) for i in range(number))
    )


def least_or_greatest(parts: Sequence[PartialTable], *, greatest: bool) -> PartialTable:
    """Of the rows of all parts with the same keys, the one whose measures are the least or the greatest; the
    first measure counts most.
    """
    table = concatenated(parts)
    order, starts = runs((*table.keys, *table.measures), len(table.keys))
    ends = np.append(starts[1:], len(order))
    return table.take(order[ends - 1 if greatest and len(order) else starts])


def merged(parts: Sequence[PartialTable], ways: Sequence[np.ufunc]) -> PartialTable:
    """The parts merged to one row for each combination of keys; `ways`: the function that merges each
    measure.
    """
    table = concatenated(parts)
    order, starts = runs(table.keys)
    if not len(order):
        return table
    pairs = zip(ways, table.measures, strict=True)
    return PartialTable(
        tuple(key[order[starts]] for key in table.keys),
        tuple(way.reduceat(one[order], starts) for way, one in pairs),
    )

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


def runs(keys: Sequence[Array]) -> tuple[Places, Places]:
    """The order that groups equal keys, and the indexes in it where each run of equal keys begins."""
    order = np.lexsort(tuple(reversed(keys)))
    if not len(order):
        return order, order
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for key in keys:
        placed = key[order]
        new[1:] |= placed[1:] != placed[:-1]
    return order, np.flatnonzero(new)


def merged(parts: Sequence[PartialTable], ways: Sequence[np.ufunc]) -> PartialTable:
    """The parts merged to one row for each combination of keys; `ways`: the function that merges each
    measure.
    """
    keys = [np.concatenate([part.keys[i] for part in parts]) for i in range(len(parts[0].keys))]
    measures = [np.concatenate([part.measures[i] for part in parts]) for i in range(len(ways))]
    order, starts = runs(keys)
    if not len(order):
        return parts[0].take(slice(0, 0))
    return PartialTable(
        tuple(key[order[starts]] for key in keys),
        tuple(way.reduceat(one[order], starts) for way, one in zip(ways, measures, strict=True)),
    )

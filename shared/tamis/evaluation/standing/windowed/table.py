"""Partial aggregates in columns: one row for each combination of keys, in their order."""

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
class Table:
    """`keys` and `measures` of one length; the first key is a pane or a window, the second a group."""

    keys: tuple[Array, ...]
    measures: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.keys[0])

    def take(self, at: Places | Mask | slice) -> Table:
        """Some of its rows."""
        return Table(tuple(key[at] for key in self.keys), tuple(one[at] for one in self.measures))

    def with_keys(self, *keys: Array) -> Table:
        """The same with other keys in the place of the first ones."""
        return Table((*keys, *self.keys[len(keys) :]), self.measures)


def runs(keys: Sequence[Array]) -> tuple[Places, Places]:
    """In which order equal keys stand together, and where in it each run of them begins."""
    order = np.lexsort(tuple(reversed(keys)))
    if not len(order):
        return order, order
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for key in keys:
        placed = key[order]
        new[1:] |= placed[1:] != placed[:-1]
    return order, np.flatnonzero(new)


def merged(parts: Sequence[Table], ways: Sequence[np.ufunc]) -> Table:
    """One row for all that have equal keys; `ways` says how each measure is put together."""
    keys = [np.concatenate([part.keys[i] for part in parts]) for i in range(len(parts[0].keys))]
    measures = [np.concatenate([part.measures[i] for part in parts]) for i in range(len(ways))]
    order, starts = runs(keys)
    if not len(order):
        return parts[0].take(slice(0, 0))
    return Table(
        tuple(key[order[starts]] for key in keys),
        tuple(way.reduceat(one[order], starts) for way, one in zip(ways, measures, strict=True)),
    )

"""The best tuples of each group: as many as a count must reach.

A count of combinations reaches c over all tuples exactly if it does over the c best tuples of each group. If
a tuple that isn't among them joins some tuples of the other sources, the c best join these, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, Vector
from tamis.operators.representatives.synopsis import group_rows, leading
from tamis.operators.row_store import Store, TextCodes
from tamis.operators.synopses.row_numbering import RowNumbering
from tamis.plan.nodes import Cover

Ints = NDArray[np.int64]


class Best:
    """The tuples with the greatest or the least values of each group, at most `Cover.most`, or all tuples."""

    def __init__(self, cover: Cover, types: Sequence[Type]) -> None:
        self._cover, self._rows = cover, Store(types)
        self._codes: TextCodes = {}
        self._numbers = RowNumbering(2 * len(cover.equal))
        # For each group its tuples as a heap, the worst first: the value and the place in the store.
        self._heaps: list[list[tuple[int, int]]] = []
        self._places: list[int] = []  # of the tuples of the last `change`

    def __len__(self) -> int:
        return len(self._rows)

    def change(self, columns: Columns, size: int) -> Ints:
        """The tuples that are better than one of the kept tuples of their group, or find it not full."""
        at, leads = leading(self._cover, columns, size)
        groups = self._numbers.of(group_rows(self._cover.equal, columns, size, self._codes)[at])
        self._heaps += ([] for _ in range(len(self._numbers) - len(self._heaps)))
        found, self._places = [], []
        end, most = len(self._rows), self._cover.most
        for own, lead, group in zip(at.tolist(), leads.tolist(), groups.tolist(), strict=True):
            heap = self._heaps[group]
            if most == 0 or len(heap) < most:
                heapq.heappush(heap, (lead, end))
                self._places.append(end)
                end += 1
            elif lead > heap[0][0]:
                place = heap[0][1]
                heapq.heapreplace(heap, (lead, place))
                self._places.append(place)
            else:
                continue
            found.append(own)
        return np.array(found, np.int64)

    def keep(self, changed: Sequence[Vector]) -> None:
        """Put each tuple in the place of the one that it replaces."""
        # Of several tuples in one place only the last one is left.
        last = dict(zip(self._places, range(len(self._places)), strict=True))
        at = np.array(list(last.values()), np.int64)
        self._rows.grow(max(len(self._rows), 1 + max(last, default=-1)))
        self._rows.put(np.array(list(last), np.int64), [one.take(at) for one in changed])

    def kept(self) -> list[Vector]:
        """The columns of all kept tuples."""
        return self._rows.all()

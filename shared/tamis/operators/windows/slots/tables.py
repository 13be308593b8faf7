"""Partial aggregates of texts by slot."""

from __future__ import annotations

from sys import getsizeof

import numpy as np

from tamis.expressions.vectors import Columns
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.pane_rows import with_rows
from tamis.operators.windows.partials import Partial, SortedBatch
from tamis.operators.windows.table import PartialTable, Places

# New entries of a table are merged with it when there are so many, and as many as it has.
MOST_WAITING = 4_096


class SlotTables:
    """Extremes of texts, and values with the greatest or least order where one of both is text, in a table as
    operators have it. A batch is merged with the table only when many entries wait.
    """

    separate = 0

    def __init__(self, partial: Partial) -> None:
        self._partial = partial
        self._table = partial.empty()
        self._new: list[PartialTable] = []

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the values that aren't NULL."""
        batch = SortedBatch.of(slots, np.zeros(len(slots), np.int64))
        new = self._partial.of(batch, columns, DictionaryEncoder())
        if len(new):
            self._new.append(new)
            if sum(map(len, self._new)) > max(MOST_WAITING, len(self._table)):
                self._merge()

    def _merge(self) -> None:
        if self._new:
            self._table = self._partial.merged([self._table, *self._new])
            self._new = []

    def table(self, slots: Places) -> PartialTable:
        """The entries of some slots."""
        self._merge()
        last = max(slots.max(initial=-1), self._table.keys[0].max(initial=-1))
        renumbered = np.full(last + 1, -1, np.int64)
        renumbered[slots] = np.arange(len(slots))
        return with_rows(self._table, renumbered)

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending. A table needs no room."""
        self._table = self.table(slots)

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        held = 0
        for table in (self._table, *self._new):
            for array in (*table.keys, *table.measures):
                texts = sum(map(getsizeof, array.tolist())) if array.dtype.kind == "O" else 0
                held += array.nbytes + texts
        return held

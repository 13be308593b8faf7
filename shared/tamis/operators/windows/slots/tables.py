"""Partial aggregates by slot of texts, and of values that are kept separately."""

from __future__ import annotations

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.pane_rows import with_rows
from tamis.operators.windows.partials import Partial, SortedBatch
from tamis.operators.windows.table import PartialTable, Places

# New entries of a table are merged with it when there are so many, and as many as it has.
MOST_WAITING = 4_096
# Bytes of a Python object that a table refers to, such as a short text.
OBJECT = 60


class SlotTables:
    """Partial aggregates in a table, for texts and for values that are kept separately: a batch is merged
    with the table only when many entries wait.
    """

    def __init__(self, partial: Partial) -> None:
        self._partial = partial
        self._texts_apart = (
            partial.each and partial.column is not None and partial.column.type is Type.VARCHAR
        )
        self._texts = DictionaryEncoder()
        self._table = partial.empty()
        self._new: list[PartialTable] = []

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the values that aren't NULL."""
        new = self._partial.of(SortedBatch.of(slots, np.zeros(len(slots), np.int64)), columns, self._texts)
        if len(new):
            self._new.append(new)
            if sum(map(len, self._new)) > max(MOST_WAITING, len(self._table)):
                self._merge()

    def _merge(self) -> None:
        if self._new:
            self._table = self._partial.merged([self._table, *self._new])
            self._new = []

    def table(self, slots: Places) -> PartialTable:
        """The entries of some slots, with texts as such."""
        self._merge()
        table = self._of(slots)
        if not self._texts_apart:
            return table
        texts = np.empty(len(self._texts), np.object_)
        texts[:] = self._texts.values()
        return table.with_keys(*table.keys[:2], texts[np.asarray(table.keys[2], np.int64)])

    def _of(self, slots: Places) -> PartialTable:
        """The entries of some slots, under the places of these."""
        last = max(slots.max(initial=-1), self._table.keys[0].max(initial=-1))
        renumbered = np.full(last + 1, -1, np.int64)
        renumbered[slots] = np.arange(len(slots))
        return with_rows(self._table, renumbered)

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room."""
        self._merge()
        self._table = self._of(slots)
        if self._texts_apart and self._texts.sparse(len(self._table)):
            codes = np.asarray(self._table.keys[2], np.int64)
            codes = self._texts.keep(codes)[codes]
            self._table = self._partial.merged([self._table.with_keys(*self._table.keys[:2], codes)])

    @property
    def separate(self) -> int:
        """The number of values that are kept separately, of which some may not be merged yet."""
        return len(self._table) + sum(map(len, self._new)) if self._partial.each else 0

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        held = OBJECT * 3 * len(self._texts)
        for table in (self._table, *self._new):
            for array in (*table.keys, *table.measures):
                held += array.nbytes + (OBJECT * len(array) if array.dtype.kind == "O" else 0)
        return held

"""Partial aggregates by slot of texts, and of values that are kept separately."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.pane_rows import with_rows
from tamis.operators.windows.partials import Partial, SortedBatch
from tamis.operators.windows.table import PartialTable, Places

# New entries of a table are merged with it when there are so many, and as many as it has.
MOST_WAITING = 4_096
# Bytes of an entry of a dictionary, besides the text.
_ENTRY = 120


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
        self._text_bytes = 0
        self._table = partial.empty()
        self._new: list[PartialTable] = []

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the values that aren't NULL."""
        known = len(self._texts)
        new = self._partial.of(SortedBatch.of(slots, np.zeros(len(slots), np.int64)), columns, self._texts)
        self._text_bytes += _bytes(self._texts.newest(len(self._texts) - known))
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
        used = len(self._table)
        if self._texts_apart and (not used or self._texts.sparse(used)):
            codes = np.asarray(self._table.keys[2], np.int64)
            codes = self._texts.keep(codes)[codes]
            self._text_bytes = _bytes(self._texts.values())
            self._table = self._partial.merged([self._table.with_keys(*self._table.keys[:2], codes)])

    @property
    def separate(self) -> int:
        """The number of values that are kept separately, of which some may not be merged yet."""
        return len(self._table) + sum(map(len, self._new)) if self._partial.each else 0

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        held = self._text_bytes + _ENTRY * len(self._texts)
        for table in (self._table, *self._new):
            for array in (*table.keys, *table.measures):
                held += array.nbytes + (_bytes(array.tolist()) if array.dtype.kind == "O" else 0)
        return held


def _bytes(texts: Iterable[str]) -> int:
    return sum(map(getsizeof, texts))

"""Values that are kept separately, by slot, for medians, percentiles and distinct values."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, dtype_of
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.partials import Partial
from tamis.operators.windows.slots import kernels
from tamis.operators.windows.slots.arrays import SlotArrays, numbers, slot_array
from tamis.operators.windows.slots.index import SlotIndex
from tamis.operators.windows.table import Array, PartialTable, Places

# Bytes of an entry of a dictionary, besides the text.
_ENTRY = 120


class SlotValues:
    """The values of a column with the number of their occurrences, by slot.

    A pair of a slot and a value has an entry. A value is an integer here: a DOUBLE's bits, a text's code.
    """

    def __init__(self, partial: Partial) -> None:
        assert partial.column is not None
        self._column = partial.column
        self._entries = SlotIndex()
        self._arrays = SlotArrays(count=slot_array(np.int64))
        self._texts = DictionaryEncoder()
        self._text_bytes = 0

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the values that aren't NULL."""
        vector = columns[self._column.alias, self._column.name]
        if vector.null is not None:
            present = ~vector.null
            slots, vector = slots[present], vector.take(present)
        if self._column.type is Type.VARCHAR:
            values = self._codes(vector.data)
        else:
            values = numbers(vector).view(np.int64)
        entries = self._entries
        if entries.used + len(slots) > entries.room:
            room = entries.fill(entries.first, entries.second, entries.used + len(slots))
            self._arrays.keep(np.arange(entries.used), room)
        kernels.add_counts(self._arrays.of["count"], entries.find(slots, values))

    def _codes(self, texts: Array) -> Places:
        known = len(self._texts)
        codes = self._texts.encode(texts.tolist())
        self._text_bytes += _bytes(self._texts.newest(len(self._texts) - known))
        return codes

    def table(self, slots: Places) -> PartialTable:
        """The values of some slots with their numbers."""
        rows = self._renumbered(slots)
        entries = np.flatnonzero(rows >= 0)
        rows = rows[entries]
        order = np.argsort(rows, kind="stable")
        rows, entries = rows[order], entries[order]
        values, counts = self._values(self._entries.second[entries]), self._arrays.of["count"][entries]
        return PartialTable((rows, np.zeros(len(rows), np.int64), values), (counts,))

    def _renumbered(self, slots: Places) -> Places:
        """For each entry the place of its slot among some slots, -1 if it isn't among them."""
        own = self._entries.first
        places = np.full(max(slots.max(initial=-1), own.max(initial=-1)) + 1, -1, np.int64)
        places[slots] = np.arange(len(slots))
        return np.asarray(places[own], np.int64)

    def _values(self, values: Places) -> Array:
        if self._column.type is Type.VARCHAR:
            texts = np.empty(len(self._texts), np.object_)
            texts[:] = self._texts.values()
            return texts[values]
        return (
            values.view(np.float64)
            if self._column.type is Type.DOUBLE
            else values.astype(dtype_of(self._column.type))
        )

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending. Room for more is made for entries as they come."""
        rows = self._renumbered(slots)
        kept = np.flatnonzero(rows >= 0)
        values = self._entries.second[kept]
        if len(self._texts) and (not len(kept) or self._texts.sparse(len(kept))):
            values = self._texts.keep(values)[values]
            self._text_bytes = _bytes(self._texts.values())
        self._arrays.keep(kept, self._entries.fill(rows[kept], values, len(kept)))

    @property
    def separate(self) -> int:
        """The number of pairs of a slot and a value."""
        return self._entries.used

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        texts = self._text_bytes + _ENTRY * len(self._texts)
        return self._entries.bytes + self._arrays.bytes + texts


def _bytes(texts: Iterable[str]) -> int:
    return sum(map(getsizeof, texts))

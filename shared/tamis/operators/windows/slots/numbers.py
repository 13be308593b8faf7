"""Partial aggregates by slot that have one value for each: compiled loops add numbers, BOOLEANs and times."""

from __future__ import annotations

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, Mask, dtype_of
from tamis.operators.aggregates.accumulators import Measure
from tamis.operators.windows.partials import Partial
from tamis.operators.windows.slots import kernels
from tamis.operators.windows.slots.arrays import SlotArrays, numbers, slot_array
from tamis.operators.windows.slots.exact_sums import SlotSums
from tamis.operators.windows.table import Array, PartialTable, Places


class SlotCounts:
    """The number of all readings by slot."""

    separate = 0

    def __init__(self) -> None:
        self._arrays = SlotArrays(count=slot_array(np.int64))

    def add(self, slots: Places, columns: Columns) -> None:
        """Add readings."""
        kernels.add_counts(self._arrays.of["count"], slots)

    def table(self, slots: Places) -> PartialTable:
        """The numbers of some slots."""
        return PartialTable(
            (np.arange(len(slots)), np.zeros(len(slots), np.int64)), (self._arrays.of["count"][slots],)
        )

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room."""
        self._arrays.keep(slots, room)

    @property
    def bytes(self) -> int:
        """The memory that they take up."""
        return self._arrays.bytes


class SlotMeasures:
    """Counts, sums and extremes of the values of a column by slot."""

    separate = 0

    def __init__(self, partial: Partial) -> None:
        assert partial.column is not None
        self._partial, self._column = partial, partial.column
        double = partial.column.type is Type.DOUBLE
        self._sums = {
            measure: SlotSums(double=double, squares=measure == "squares")
            for measure in partial.measures
            if measure in ("total", "squares")
        }
        self._arrays = SlotArrays(count=slot_array(np.int64))
        for extreme in ("least", "greatest"):
            if extreme in partial.measures:
                self._arrays.of[extreme] = slot_array(np.float64 if double else np.int64)
                self._arrays.of[f"has {extreme}"] = slot_array(np.bool_)

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the values that aren't NULL."""
        vector = columns[self._column.alias, self._column.name]
        if vector.null is not None:
            present = ~vector.null
            slots = slots[present]
            if self._partial.measures != ("count",):
                vector = vector.take(present)
        arrays = self._arrays.of
        kernels.add_counts(arrays["count"], slots)
        if self._partial.measures == ("count",):
            return
        values = numbers(vector)
        for sums in self._sums.values():
            sums.add(slots, values)
        for extreme in ("least", "greatest"):
            if extreme in arrays:
                state = arrays[extreme], arrays[f"has {extreme}"]
                kernels.keep_extremes(*state, slots, values, extreme == "greatest")

    def table(self, slots: Places) -> PartialTable:
        """The partial aggregates of those slots that have values."""
        rows = np.flatnonzero(self._arrays.of["count"][slots])
        slots = slots[rows]
        measures = tuple(self._measure(one, slots) for one in self._partial.measures)
        return PartialTable((rows, np.zeros(len(rows), np.int64)), measures)

    def _measure(self, measure: Measure, slots: Places) -> Array:
        if measure in self._sums:
            totals = np.empty(len(slots), np.object_)
            totals[:] = self._sums[measure].totals(slots)
            return totals
        found = self._arrays.of[measure][slots]
        return found if measure == "count" else found.astype(dtype_of(self._column.type))

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room."""
        self._arrays.keep(slots, room)
        for sums in self._sums.values():
            sums.keep(slots, room)

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        return self._arrays.bytes + sum(sums.bytes for sums in self._sums.values())


class SlotArguments:
    """The value with the greatest or the least order by slot, for `arg_min` and `arg_max`. Texts are neither
    values nor orders.
    """

    separate = 0

    def __init__(self, partial: Partial) -> None:
        assert partial.column is not None
        assert partial.order is not None
        self._column, self._order, self._greatest = partial.column, partial.order, partial.greatest
        kinds = [
            np.float64 if one.type is Type.DOUBLE else np.int64 for one in (partial.order, partial.column)
        ]
        self._arrays = SlotArrays(
            order=slot_array(kinds[0]), value=slot_array(kinds[1]), known=slot_array(np.bool_)
        )

    def add(self, slots: Places, columns: Columns) -> None:
        """Add the readings of which neither value nor order is NULL."""
        order, value = (columns[one.alias, one.name] for one in (self._order, self._column))
        nulls: list[Mask] = [one.null for one in (order, value) if one.null is not None]
        if nulls:
            present = ~np.logical_or.reduce(nulls)
            slots, order, value = slots[present], order.take(present), value.take(present)
        arrays = self._arrays.of
        state = arrays["order"], arrays["value"], arrays["known"]
        kernels.keep_arguments(*state, slots, numbers(order), numbers(value), self._greatest)

    def table(self, slots: Places) -> PartialTable:
        """The orders and values of those slots that have one."""
        rows = np.flatnonzero(self._arrays.of["known"][slots])
        slots = slots[rows]
        measures = (
            self._arrays.of["order"][slots].astype(dtype_of(self._order.type)),
            self._arrays.of["value"][slots].astype(dtype_of(self._column.type)),
        )
        return PartialTable((rows, np.zeros(len(rows), np.int64)), measures)

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room."""
        self._arrays.keep(slots, room)

    @property
    def bytes(self) -> int:
        """The memory that they take up."""
        return self._arrays.bytes

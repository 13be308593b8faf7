"""The choice of a class for each kind of partial aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns
from tamis.operators.windows.partials import Partial
from tamis.operators.windows.slots.numbers import SlotArguments, SlotCounts, SlotMeasures
from tamis.operators.windows.slots.tables import SlotTables
from tamis.operators.windows.slots.values import SlotValues
from tamis.operators.windows.table import PartialTable, Places


class SlotAggregates(Protocol):
    """Partial aggregates of one kind, by slot."""

    def add(self, slots: Places, columns: Columns) -> None:
        """Add readings, with the slot of each."""

    def table(self, slots: Places) -> PartialTable:
        """The partial aggregates of some slots; the first key is the place in `slots`, the second 0."""

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, which are then numbered from 0; forget the others. Make room for the
        slots below `room`.
        """

    @property
    def separate(self) -> int:
        """The number of values that are kept separately."""

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""


def slot_aggregates(partials: Sequence[Partial]) -> list[SlotAggregates]:
    """The partial aggregates of each kind."""
    return [_aggregates_of(partial) for partial in partials]


def _aggregates_of(partial: Partial) -> SlotAggregates:
    if partial.column is None:
        return SlotCounts()
    texts = Type.VARCHAR in {one.type for one in (partial.column, partial.order) if one is not None}
    if partial.each:
        return SlotValues(partial)
    if texts and partial.measures != ("count",):
        return SlotTables(partial)
    return SlotMeasures(partial) if partial.order is None else SlotArguments(partial)

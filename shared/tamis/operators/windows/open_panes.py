"""The panes that an edge has open: partial aggregates of its readings, until a cut sends them.

A reading costs a look-up of its group and compiled additions, because edges add all readings that pass the
filter. Sums are exact whatever the order of readings and cuts, so rows of several cuts of a pane can be
merged.
"""

from __future__ import annotations

import numpy as np

from tamis.expressions.vectors import Columns
from tamis.operators.windows.group_rows import with_computed_values
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import partials
from tamis.operators.windows.slots.build import slot_aggregates
from tamis.operators.windows.slots.group_codes import GroupCodes
from tamis.operators.windows.slots.index import SlotIndex
from tamis.operators.windows.table import Places
from tamis.plan.nodes import Grouping


class OpenPanes:
    """Partial aggregates of a `PartialAggregation`'s grouping by pane and group.

    Each combination of a pane and a group has a slot, its number in arrays. The columns of the grouping have
    the empty alias. `keeps_values`: some values are kept separately.
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._groups = GroupCodes(grouping.by)
        partials_ = partials(grouping.aggregates)
        self._aggregates = slot_aggregates(partials_)
        self.keeps_values = any(partial.each for partial in partials_)
        self._slots = SlotIndex()  # of pairs of pane and group

    def add(self, panes: Places, columns: Columns, rows: int) -> None:
        """Add readings. `panes` has the beginning of each one's pane, in microseconds. `columns` has the
        columns that the grouping reads, with the empty alias.
        """
        if not rows:
            return
        taken = with_computed_values(self._grouping, columns, rows)
        if self._slots.used + rows > self._slots.room:
            self._keep(np.arange(self._slots.used), self._slots.used + rows)
        by = [taken[column.alias, column.name] for column in self._grouping.by]
        panes = np.ascontiguousarray(panes, np.int64)
        slots = self._slots.find(panes, self._groups.encode(by, rows))
        for aggregates in self._aggregates:
            aggregates.add(slots, taken)

    def _keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room for at least so many."""
        panes, groups = self._slots.first[slots], self._groups.keep(self._slots.second[slots])
        room = self._slots.fill(panes, groups, room)
        for aggregates in self._aggregates:
            aggregates.keep(slots, room)

    def take(self, before: int | None = None) -> PaneRows:
        """Remove the rows whose pane begins before a time in microseconds, or all rows; returns them in order
        of their panes. Groups and texts are forgotten once none has rows, or many have none.
        """
        panes = self._slots.first
        gone = np.ones(len(panes), np.bool_) if before is None else panes < before
        slots = np.flatnonzero(gone)
        slots = slots[np.argsort(panes[slots], kind="stable")]
        found = PaneRows(
            panes[slots],
            self._groups.values(self._slots.second[slots]),
            tuple(aggregates.table(slots) for aggregates in self._aggregates),
        )
        if len(slots):
            kept = np.flatnonzero(~gone)
            self._keep(kept, len(kept))
        return found

    @property
    def rows(self) -> int:
        """The number of combinations of pane and group."""
        return self._slots.used

    @property
    def entries(self) -> int:
        """The number of rows, and of values that are kept separately."""
        return self.rows + sum(aggregates.separate for aggregates in self._aggregates)

    @property
    def bytes(self) -> int:
        """The memory of rows and groups, about."""
        return self._slots.bytes + self._groups.bytes + sum(one.bytes for one in self._aggregates)

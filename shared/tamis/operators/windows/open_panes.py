"""The panes that an edge has open: partial aggregates of its readings, until a cut sends them.

A reading costs a look-up of its group and compiled additions, because edges add all readings that pass the
filter. Sums are exact whatever the order of readings and cuts, so rows of several cuts of a pane can be
merged.
"""

from __future__ import annotations

import numpy as np

from tamis.expressions.vectors import Columns
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import partials
from tamis.operators.windows.row_joins import with_computed_values
from tamis.operators.windows.slots.build import slot_aggregates
from tamis.operators.windows.slots.group_codes import GroupCodes
from tamis.operators.windows.slots.kernels import find_slots
from tamis.operators.windows.table import Places
from tamis.plan.nodes import Grouping

# Slots for which there is room at first.
_LEAST = 1_024


class OpenPanes:
    """Partial aggregates of a `PartialAggregation`'s grouping by pane and group.

    Each combination of a pane and a group has a slot, its number in arrays. The columns of the grouping have
    the empty alias.
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._groups = GroupCodes(grouping.by)
        self._aggregates = slot_aggregates(partials(grouping.aggregates))
        self._used = 0
        none: Places = np.empty(0, np.int64)
        self._pane_of, self._group_of = none, none  # of each slot
        self._table = none  # of slots, by the hash of pane and group

    def add(self, panes: Places, columns: Columns, rows: int) -> None:
        """Add readings. `panes` has the beginning of each one's pane, in microseconds. `columns` has the
        columns that the grouping reads, with the empty alias.
        """
        if not rows:
            return
        taken = with_computed_values(self._grouping, columns, rows)
        if self._used + rows > len(self._pane_of):
            self._keep(np.arange(self._used), self._used + rows)
        by = [taken[column.alias, column.name] for column in self._grouping.by]
        groups, slots = self._groups.encode(by, rows), np.empty(rows, np.int64)
        panes = np.ascontiguousarray(panes, np.int64)
        state = self._table, self._pane_of, self._group_of
        self._used = find_slots(*state, self._used, panes, groups, slots)
        for aggregates in self._aggregates:
            aggregates.add(slots, taken)

    def _keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room for at least so many."""
        room = max(_LEAST, 1 << (room - 1).bit_length())
        for aggregates in self._aggregates:
            aggregates.keep(slots, room)
        count = self._used = len(slots)
        panes, groups = self._pane_of[slots], self._groups.keep(self._group_of[slots])
        self._pane_of, self._group_of = np.zeros(room, np.int64), np.zeros(room, np.int64)
        # Less than half of the places are used.
        self._table = np.full(2 * room, -1, np.int64)
        find_slots(self._table, self._pane_of, self._group_of, 0, panes, groups, np.empty(count, np.int64))

    def take(self, before: int | None = None) -> PaneRows:
        """Remove the rows whose pane begins before a time in microseconds, or all rows; returns them in order
        of their panes. Groups and texts are forgotten once none has rows, or many have none.
        """
        panes = self._pane_of[: self._used]
        gone = np.ones(self._used, np.bool_) if before is None else panes < before
        slots = np.flatnonzero(gone)
        slots = slots[np.argsort(panes[slots], kind="stable")]
        found = PaneRows(
            panes[slots],
            self._groups.values(self._group_of[slots]),
            tuple(aggregates.table(slots) for aggregates in self._aggregates),
        )
        if len(slots):
            kept = np.flatnonzero(~gone)
            self._keep(kept, len(kept))
        return found

    @property
    def rows(self) -> int:
        """The number of combinations of pane and group, and of values that are kept separately."""
        return self._used + sum(aggregates.separate for aggregates in self._aggregates)

    @property
    def bytes(self) -> int:
        """The memory of rows and groups, about."""
        arrays = (self._table, self._pane_of, self._group_of)
        held = sum(array.nbytes for array in arrays) + sum(one.bytes for one in self._aggregates)
        return held + self._groups.bytes

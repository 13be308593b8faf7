"""Rows of partial aggregates, one for each pane and group, as edges send them and joiners take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.expressions.vectors import Mask, Vector
from tamis.operators.windows.table import PartialTable, Places


@dataclass(frozen=True)
class PaneRows:
    """Partial aggregates of the readings of some panes and groups; each combination of both has one row.

    `panes` has the beginning of each row's pane, in microseconds. `groups` has the columns of groups, in the
    order of `Grouping.by`. `tables` has the tables of `partials(Grouping.aggregates)`: their first key is the
    number of the row, ascending, and the second is 0. A third key of VARCHARs is the text itself.
    """

    panes: Places
    groups: tuple[Vector, ...]
    tables: tuple[PartialTable, ...]

    def __len__(self) -> int:
        return len(self.panes)

    @property
    def counts(self) -> Places:
        """The number of readings of each row."""
        return np.asarray(self.tables[0].measures[0], np.int64)

    def take(self, rows: Places | Mask) -> PaneRows:
        """Some of the rows, in this order: their numbers, each at most once, or a mask."""
        numbers = np.arange(len(self))[rows]
        renumbered = np.full(len(self), -1, np.int64)
        renumbered[numbers] = np.arange(len(numbers))
        return PaneRows(
            self.panes[numbers],
            tuple(vector.take(numbers) for vector in self.groups),
            tuple(with_rows(table, renumbered) for table in self.tables),
        )


def with_rows(table: PartialTable, renumbered: Places) -> PartialTable:
    """The entries of a table whose row has a new number that isn't -1, in the order of these numbers."""
    rows = renumbered[np.asarray(table.keys[0], np.int64)]
    kept = np.flatnonzero(rows >= 0)
    rows = rows[kept]
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        kept, rows = kept[order], rows[order]
    return table.take(kept).with_keys(rows)

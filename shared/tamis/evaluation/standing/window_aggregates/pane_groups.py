"""Groups of panes with their partial aggregates, and the rows of windows that are computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.evaluation.standing.contract import Rows
from tamis.evaluation.standing.window_aggregates.closing import closed_windows, open_panes
from tamis.evaluation.standing.window_aggregates.group_rows import GroupRows
from tamis.evaluation.standing.window_aggregates.panes import Panes
from tamis.evaluation.standing.window_aggregates.table import Places
from tamis.expressions.vectors import Columns
from tamis.query.model import Query


class PaneGroups:
    """The groups of the panes of a query, which has a `Grouping`.

    `panes` numbers the panes and windows.
    """

    def __init__(self, query: Query, panes: Panes) -> None:
        self._of, self._panes = GroupRows(query), panes
        self._tables = self._of.empty()

    @property
    def first(self) -> int | None:
        """The first pane that has a group."""
        panes = self._tables[0].keys[0]
        return int(panes[0]) if len(panes) else None

    @property
    def nothing(self) -> Rows:
        """No rows."""
        return self._of.nothing

    def count(self, pane: Places, taken: Columns) -> None:
        """Count rows in their panes."""
        self._tables = self._of.added(self._tables, pane, self._of.counted(taken, len(pane)))

    def close(self, first: int, last: int) -> Rows:
        """The rows of the windows from `first` to `last`, in order of windows and groups. The panes that no
        later window has are removed.
        """
        parts = []
        for closed, kept in closed_windows(self._of.partials, self._tables, self._panes, first, last):
            windows = np.asarray(closed[0].keys[0], np.int64)
            parts.append(self._of.rows(closed, self._panes.starts(windows), self._panes.ends(windows)))
            self._tables = kept
        self._tables = open_panes(self._of.partials, self._tables, self._panes, last)
        (self._tables,) = self._of.forget(self._tables)
        return Rows.concat([self.nothing, *parts])

    def entries(self) -> int:
        """Groups of panes, and each value that `median` or `count(DISTINCT)` needs."""
        return self._of.entries(self._tables)

    def dumped(self) -> list[Any]:
        """The state as JSON."""
        return [*self._of.dump_values(), self._of.dump(self._tables)]

    def restore(self, dumped: list[Any]) -> None:
        """Continue from a state of the same form."""
        groups, texts, tables = dumped
        self._of.restore_values(groups, texts)
        self._tables = self._of.restored(tables)

    def form(self) -> list[object]:
        """The form of the state as JSON."""
        window = self._panes.window
        more = [window.offset, window.cumulative]
        return ["windows", window.slide, window.size, *self._of.form(), *(more if any(more) else [])]

"""Evaluator of aggregates of the windows of one stream, which may be joined with tables.

A window consists of panes, each as long as the slide (`panes`). A tuple is counted in its pane. When the
watermark has passed a window's end, the window's row is computed from its panes. A pane is removed together
with the last window that contains it. So a late tuple counts in those windows of its pane that haven't ended.
Cumulative windows with one start have the panes in common that end with one of them or before: these become
one pane.
"""

from __future__ import annotations

import numpy as np

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.state import pack_state, unpack_state
from tamis.evaluation.standing.window_aggregates.pane_groups import PaneGroups
from tamis.evaluation.standing.window_aggregates.panes import Panes
from tamis.evaluation.standing.window_aggregates.row_joins import TableJoin, chosen, with_computed_values
from tamis.evaluation.standing.window_aggregates.table import Places
from tamis.expressions.vectors import Columns
from tamis.query.model import Catalog, Query


class WindowedGroups:
    """See `StandingEvaluator`. `late` counts the tuples that arrived after one of their windows had ended,
    and so are missing in its row.
    """

    def __init__(self, query: Query, catalog: Catalog) -> None:
        """Raises InputError if the file of a table can't be read."""
        window = query.window
        assert query.grouping is not None
        assert window is not None
        (source,) = query.windowed
        stream = catalog.streams[source.stream]
        assert stream.time is not None
        self.streams = frozenset({stream.name})
        self.late = 0
        self._query = query
        self._alias, self._time = source.alias, stream.time
        self._panes = Panes(window)
        self._join = TableJoin(query, (source.alias,), query_inputs(query, catalog).relations)
        self._groups = PaneGroups(query, self._panes)
        self._ended: int | None = None  # the last window that has

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `StandingEvaluator`. Only the watermark completes rows."""
        columns = {(self._alias, name): vector for name, vector in batch.items()}
        pane = self._panes.of(np.asarray(batch[self._time].data, np.int64))
        late = np.zeros(rows, np.bool_)
        for at, found in self._join.rows(columns, rows):
            if self._ended is not None:
                late[at[pane[at] - self._panes.width < self._ended]] = True
            self._count(pane[at], found)
        self.late += int(np.count_nonzero(late))
        return self._groups.nothing

    def _count(self, pane: Places, found: Columns) -> None:
        """Count combinations of a tuple and rows of tables."""
        if self._ended is not None:
            keep = self._panes.last_window(pane) > self._ended
            pane, found = self._panes.joined(pane[keep], self._ended), chosen(found, keep)
        if len(pane):
            self._groups.count(pane, with_computed_values(self._query, found, len(pane)))

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `StandingEvaluator`: the rows of the windows that have ended, in order of their ends and
        groups.
        """
        last = self._panes.ended(watermark)
        if self._ended is not None and last <= self._ended:
            return self._groups.nothing
        pane = self._groups.first
        first = last + 1 if pane is None else pane - self._panes.width + 1
        if self._ended is not None:
            first = max(first, self._ended + 1)
        self._ended = last
        return self._groups.close(first, last)

    @property
    def passed(self) -> int | None:
        """See `RowsInOrder`: the last microsecond of the next window that ends."""
        if self._ended is None:
            return None
        return int(self._panes.ends(np.array([self._ended + 1]))[0]) - 1

    def entries(self) -> int:
        """See `StandingEvaluator`: groups of panes, and each value that `median` or `count(DISTINCT)` needs.
        The rows of tables aren't counted.
        """
        return self._groups.entries()

    def dump(self) -> bytes:
        """See `StandingEvaluator`."""
        return pack_state(self._form(), [self._ended, self.late, *self._groups.dumped()])

    def load(self, state: bytes) -> None:
        """See `StandingEvaluator`."""
        self._ended, self.late, *panes = unpack_state(state, self._form())
        self._groups.restore(panes)

    def _form(self) -> list[object]:
        return [*self._groups.form(), *self._join.form()]

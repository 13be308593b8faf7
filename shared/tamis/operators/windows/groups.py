"""Evaluator of aggregates of the windows of one stream, which may be joined with tables.

A window consists of panes, each as long as the slide (`Panes`). A tuple is counted in its pane. When the
watermark has passed a window's end, the window's row is computed from its panes. A pane is removed together
with the last window that contains it. So a late tuple counts in those windows of its pane that haven't ended.
Cumulative windows with one start have the panes in common that end with one of them or before: these become
one pane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.declarations.definitions import Window
from tamis.declarations.file_access import FileAccess
from tamis.expressions.vectors import Columns
from tamis.operators.contract import Batch, Rows
from tamis.operators.state import pack_state, unpack_state
from tamis.operators.tables import table_rows
from tamis.operators.windows.group_rows import GroupRows, with_computed_values
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import Partial
from tamis.operators.windows.row_joins import TableJoin, chosen
from tamis.operators.windows.shared_panes import Projection
from tamis.operators.windows.table import PartialTable, Places, concatenated
from tamis.plan import nodes
from tamis.plan.nodes import Grouping

# The most windows at a time, and the most pairs of an entry and a window that contains it, unless a single
# window has more.
_WINDOWS = 4_096
_PAIRS = 2_000_000
# The panes of cumulative windows are merged after each block, so smaller blocks need less work.
_CUMULATIVE_PAIRS = 100_000

Tables = list[PartialTable]


@dataclass(frozen=True)
class Panes:
    """Panes are as long as the slide and are numbered in order of time, from the one that begins at the
    offset. The window with the number w ends together with the pane w + width - 1. Of HOP and TUMBLE it
    begins with the pane w; of CUMULATE with the last pane before its end
    whose number is a multiple of `width`.

    >>> panes = Panes(Window(slide=10, size=30, cumulative=True))
    >>> panes.of(np.array([0, 35])).tolist(), panes.starts(np.array([-2, 0])).tolist()
    ([0, 3], [0, 0])
    """

    window: Window

    @property
    def width(self) -> int:
        """The number of panes in the size of a window."""
        return self.window.size // self.window.slide

    def of(self, times: Places) -> Places:
        """The panes of times in microseconds."""
        panes: Places = (times - self.window.offset) // self.window.slide
        return panes

    def ended(self, watermark: int) -> int:
        """The last window that ends at the watermark or before."""
        return (watermark - self.window.offset) // self.window.slide - self.width

    def last_window(self, panes: Places) -> Places:
        """The last window that contains each pane; the first one has the number of the pane - `width` + 1."""
        return panes // self.width * self.width if self.window.cumulative else panes

    def starts(self, windows: Places) -> Places:
        """The times at which windows begin."""
        first = windows
        if self.window.cumulative:
            first = (windows + self.width - 1) // self.width * self.width
        return first * self.window.slide + self.window.offset

    def ends(self, windows: Places) -> Places:
        """The times at which windows end, which they don't include."""
        return (windows + self.width) * self.window.slide + self.window.offset

    def joined(self, panes: Places, ended: int) -> Places:
        """The panes with those that no window still has to tell apart under one number. `ended`: the last
        window that has ended; all panes are in later windows, too.
        """
        if not self.window.cumulative:
            return panes
        return np.where(panes < ended + self.width, panes // self.width * self.width, panes)


def closed_windows(
    partials: Sequence[Partial], tables: Tables, panes: Panes, first: int, last: int
) -> Iterator[tuple[Tables, Tables]]:
    """The tables of the windows from `first` to `last`, some windows at a time, each with the tables of the
    panes that later windows need. The first key of the tables of windows is the number of the window.
    """
    width = panes.width
    most = _CUMULATIVE_PAIRS if panes.window.cumulative else _PAIRS
    while first <= last:
        numbers = tables[0].keys[0]
        at = int(np.searchsorted(numbers, first))
        if at == len(numbers):
            return
        # Windows before the next pane are empty.
        first = max(first, int(numbers[at]) - width + 1)
        if first > last:
            return
        block = min(last - first + 1, _WINDOWS)
        while block > 1 and _pairs(tables, first, first + block - 1, width) > most:
            block //= 2
        to = first + block - 1
        closed = [
            _windows(partial, _between(table, first, to + width - 1), (first, to), panes)
            for partial, table in zip(partials, tables, strict=True)
        ]
        tables = open_panes(partials, tables, panes, to)
        yield closed, tables
        first = to + 1


def open_panes(partials: Sequence[Partial], tables: Tables, panes: Panes, ended: int) -> Tables:
    """The tables of the panes that windows after `ended` need."""
    kept = [one.take(panes.last_window(np.asarray(one.keys[0], np.int64)) > ended) for one in tables]
    if not panes.window.cumulative:
        return kept
    return [_joined(partial, one, panes, ended) for partial, one in zip(partials, kept, strict=True)]


def _joined(partial: Partial, table: PartialTable, panes: Panes, ended: int) -> PartialTable:
    """The table with the panes as one that all of its windows have in common. They are the first rows."""
    shared = int(np.searchsorted(table.keys[0], ended + panes.width))
    if not shared:
        return table
    own = table.take(slice(0, shared))
    own = own.with_keys(panes.joined(np.asarray(own.keys[0], np.int64), ended))
    return concatenated([partial.merged([own]), table.take(slice(shared, len(table)))])


def _between(table: PartialTable, first: int, last: int) -> PartialTable:
    """The rows of the panes from `first` to `last`."""
    low, high = np.searchsorted(table.keys[0], (first, last + 1))
    return table.take(slice(int(low), int(high)))


def _pairs(tables: Sequence[PartialTable], first: int, last: int, width: int) -> int:
    """An upper bound of the number of pairs of entry and window."""
    entries = max(len(_between(table, first, last + width - 1)) for table in tables)
    return entries * min(width, last - first + 1)


def _windows(partial: Partial, table: PartialTable, block: tuple[int, int], panes: Panes) -> PartialTable:
    if panes.width == 1:
        return table
    pane = np.asarray(table.keys[0], np.int64)
    least = np.maximum(pane - panes.width + 1, block[0])
    count: Places = np.maximum(np.minimum(panes.last_window(pane), block[1]) - least + 1, 0)
    which = np.repeat(np.arange(len(pane)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return partial.merged([table.take(which).with_keys(least[which] + place)])


class WindowedGroups:
    """Aggregates of windows, with a row for each window and group once the window has ended. `late` counts
    the tuples that arrived after one of their windows had ended, and so are missing in its row.
    """

    def __init__(self, node: nodes.Windows, file_access: FileAccess) -> None:
        """Raises InputError if the file of a table can't be read, and RefusedError if it has other rows than
        those of the plan.
        """
        self.streams = frozenset({node.scan.stream})
        self.late = 0
        self._grouping = node.grouping
        self._alias, self._time = node.scan.alias, node.scan.time
        self._panes = Panes(node.window)
        relations = [table_rows(one.table, file_access) for one in node.tables]
        self._join = TableJoin(node.scan, node.tables, relations)
        self._of = GroupRows(node.grouping, several=bool(node.tables))
        self._tables = self._of.empty()  # the groups of panes with their partial aggregates
        self._ended: int | None = None  # the last window that has
        self._sent: tuple[Grouping, Projection] | None = None  # of the last rows of panes

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Count the tuples in their panes; rows come only with the watermark."""
        columns = {(self._alias, name): vector for name, vector in batch.items()}
        pane = self._panes.of(np.asarray(batch[self._time].data, np.int64))
        late = np.zeros(rows, np.bool_)
        for at, found in self._join.rows(columns, rows):
            if self._ended is not None:
                late[at[pane[at] - self._panes.width < self._ended]] = True
            self._count(pane[at], found)
        self.late += int(np.count_nonzero(late))
        return self._of.nothing

    def _count(self, pane: Places, found: Columns) -> None:
        """Count combinations of a tuple and rows of tables."""
        if self._ended is not None:
            keep = self._panes.last_window(pane) > self._ended
            pane, found = self._panes.joined(pane[keep], self._ended), chosen(found, keep)
        if len(pane):
            values = with_computed_values(self._grouping, found, len(pane))
            self._tables = self._of.added(self._tables, pane, self._of.counted(values, len(pane)))

    def take_panes(self, rows: PaneRows, sent: Grouping) -> None:
        """Count readings by the partial aggregates that edges computed of them. `sent` is the grouping of the
        rows, which may serve other queries too; each row's pane lies in one pane of this query.

        Raises RefusedError if the query needs something else than what is sent.
        """
        if self._sent is None or self._sent[0] != sent:
            self._sent = sent, Projection.of(sent, self._grouping)
        pane = self._panes.of(rows.panes)
        if self._ended is not None:
            self.late += int(rows.counts[pane - self._panes.width < self._ended].sum())
            keep = self._panes.last_window(pane) > self._ended
            rows, pane = rows.take(keep), self._panes.joined(pane[keep], self._ended)
        if len(rows):
            self._tables = self._of.merged(self._tables, pane, self._sent[1].project(rows))

    def advance(self, stream: str, watermark: int) -> Rows:
        """The rows of the windows that the watermark ends, in order of their ends and groups."""
        last = self._panes.ended(watermark)
        if self._ended is not None and last <= self._ended:
            return self._of.nothing
        panes = self._tables[0].keys[0]
        first = int(panes[0]) - self._panes.width + 1 if len(panes) else last + 1
        if self._ended is not None:
            first = max(first, self._ended + 1)
        self._ended = last
        return self._close(first, last)

    def _close(self, first: int, last: int) -> Rows:
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
        return Rows.concat([self._of.nothing, *parts])

    @property
    def passed(self) -> int | None:
        """The last microsecond of the next window that ends; None before the first watermark."""
        if self._ended is None:
            return None
        return int(self._panes.ends(np.array([self._ended + 1]))[0]) - 1

    def entries(self) -> int:
        """The number of groups of panes, and of the values that `median` or `count(DISTINCT)` needs. The rows
        of tables aren't counted.
        """
        return self._of.entries(self._tables)

    def dump(self) -> bytes:
        """The last window that has ended, the number of late tuples, and the groups of panes, as JSON."""
        state = [self._ended, self.late, *self._of.dump_values(), self._of.dump(self._tables)]
        return pack_state(self._form(), state)

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        self._ended, self.late, groups, texts, tables = unpack_state(state, self._form())
        self._of.restore_values(groups, texts)
        self._tables = self._of.restored(tables)

    def _form(self) -> list[object]:
        window = self._panes.window
        more = [window.offset, window.cumulative]
        form = ["windows", window.slide, window.size, *self._of.form(), *(more if any(more) else [])]
        return [*form, *self._join.form()]

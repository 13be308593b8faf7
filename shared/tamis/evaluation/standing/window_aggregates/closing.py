"""Merge the panes of windows that have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.evaluation.standing.window_aggregates.panes import Panes
from tamis.evaluation.standing.window_aggregates.partials import Partial
from tamis.evaluation.standing.window_aggregates.table import PartialTable, Places, concatenated

# The most windows at a time, and the most pairs of an entry and a window that contains it, unless a single
# window has more.
_WINDOWS = 4_096
_PAIRS = 2_000_000
# The panes of cumulative windows are merged after each block, so smaller blocks need less work.
_CUMULATIVE_PAIRS = 100_000

Tables = list[PartialTable]


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

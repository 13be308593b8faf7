"""Merge the panes of windows that have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.evaluation.standing.window_aggregates.partials import Partial
from tamis.evaluation.standing.window_aggregates.table import PartialTable, Places

# The most windows at a time, and the most entries in all their panes, unless a single window has more.
_WINDOWS = 4_096
_ENTRIES = 2_000_000


def closed_windows(
    partials: Sequence[Partial], tables: Sequence[PartialTable], first: int, last: int, width: int
) -> Iterator[list[PartialTable]]:
    """The tables of the windows from `first` to `last`, some windows at a time. The number of a window is the
    number of the first of its `width` panes. The first key of the tables is the window.
    """
    panes = tables[0].keys[0]
    while first <= last:
        at = int(np.searchsorted(panes, first))
        if at == len(panes):
            return
        # Windows before the next pane are empty.
        first = max(first, int(panes[at]) - width + 1)
        if first > last:
            return
        block = min(last - first + 1, _WINDOWS)
        while block > 1 and _pairs(tables, first, first + block - 1, width) > _ENTRIES:
            block //= 2
        to = first + block - 1
        yield [
            _windows(partial, _between(table, first, to + width - 1), (first, to), width)
            for partial, table in zip(partials, tables, strict=True)
        ]
        first = to + 1


def _between(table: PartialTable, first: int, last: int) -> PartialTable:
    """The rows of the panes from `first` to `last`."""
    low, high = np.searchsorted(table.keys[0], (first, last + 1))
    return table.take(slice(int(low), int(high)))


def _pairs(tables: Sequence[PartialTable], first: int, last: int, width: int) -> int:
    """An upper bound of the number of pairs of entry and window."""
    entries = max(len(_between(table, first, last + width - 1)) for table in tables)
    return entries * min(width, last - first + 1)


def _windows(partial: Partial, table: PartialTable, block: tuple[int, int], width: int) -> PartialTable:
    if width == 1:
        return table
    pane = table.keys[0]
    least = np.maximum(pane - width + 1, block[0])
    count: Places = np.minimum(pane, block[1]) - least + 1
    which = np.repeat(np.arange(len(pane)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return partial.merged([table.take(which).with_keys(least[which] + place)])

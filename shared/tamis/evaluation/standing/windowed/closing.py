"""The panes of windows that end, put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.evaluation.standing.windowed.partials import Partial
from tamis.evaluation.standing.windowed.table import Places, Table, merged

# At most so many windows at a time, and so many entries in all their panes, unless one window has more.
_WINDOWS = 4_096
_ENTRIES = 2_000_000


def ended(
    partials: Sequence[Partial], tables: Sequence[Table], first: int, last: int, width: int
) -> Iterator[list[Table]]:
    """The tables of the windows from `first` to `last`, some at a time; a window has the number of the first
    of its `width` panes. The first key of the tables is then the window.
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


def _between(table: Table, first: int, last: int) -> Table:
    """The rows of some panes."""
    low, high = np.searchsorted(table.keys[0], (first, last + 1))
    return table.take(slice(int(low), int(high)))


def _pairs(tables: Sequence[Table], first: int, last: int, width: int) -> int:
    """At most how many times an entry lies in a window."""
    entries = max(len(_between(table, first, last + width - 1)) for table in tables)
    return entries * min(width, last - first + 1)


def _windows(partial: Partial, table: Table, block: tuple[int, int], width: int) -> Table:
    if width == 1:
        return table
    pane = table.keys[0]
    least = np.maximum(pane - width + 1, block[0])
    count: Places = np.minimum(pane, block[1]) - least + 1
    which = np.repeat(np.arange(len(pane)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return merged([table.take(which).with_keys(least[which] + place)], partial.ways)

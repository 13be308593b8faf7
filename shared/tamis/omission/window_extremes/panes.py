"""Extremes of panes: the decisions about hopping and tumbling windows before a pane is complete.

Windows start at the multiples of the slide, and the slide divides their size. A *pane* is the span between
two such starts, and a window is n = size / slide consecutive panes. Only the greatest and the least tuple
of a pane can be those of a window, and one of several equal tuples is enough. Once panes are complete,
windows of panes are closed windows over whole numbers, which the rule for time ranges decides (`batch`).
"""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.omission.columns import Bools, Flags, Floats, Int64s
from tamis.omission.ticks import NEVER

HELD, RETAINED, PUBLISHED, DROPPED = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)


@njit(cache=True)
def extremes(
    keys: Int64s,
    panes: Int64s,
    values: Floats,
    above_due: Int64s,
    below_due: Int64s,
    clocks: Int64s,
    lasts: Int64s,
    above: bool,
    below: bool,
    fate: Flags,
) -> Bools:
    """Mark the tuples that are extremes of their panes: the greatest, the least, or one of each.

    Rows are ordered by key and pane, and within a pane by arrival. All times are on the caller's clock:
    `clocks` are the arrivals of the rows, `lasts` the moments until which (not included) a pane is decided
    now, `above_due` and `below_due` the deadlines of the two sides (`NEVER` for none). `fate` is given as
    `HELD` or, for a tuple that is already published, `RETAINED`. An extreme whose deadline comes before the
    tuple that would replace it becomes `PUBLISHED`. A held tuple that no side needs becomes `DROPPED`, and
    the extreme of its side inherits its deadline.
    """
    n = len(keys)
    is_extreme = np.zeros(n, np.bool_)
    end = 0
    while end < n:
        start = end
        high = low = -1
        while end < n and keys[end] == keys[start] and panes[end] == panes[start]:
            i = end
            end += 1
            for due, best in ((above_due, high), (below_due, low)):
                if best >= 0 and fate[best] == HELD and due[best] < clocks[i]:
                    fate[best] = PUBLISHED
            if above:
                better = (
                    high < 0
                    or values[i] > values[high]
                    or (values[i] == values[high] and fate[i] != HELD and fate[high] == HELD)
                )
                winner, loser = (i, high) if better else (high, i)
                if loser >= 0 and fate[loser] == HELD and fate[winner] == HELD:
                    above_due[winner] = min(above_due[winner], above_due[loser])
                if loser >= 0:
                    above_due[loser] = NEVER
                high = winner
            if below:
                better = (
                    low < 0
                    or values[i] < values[low]
                    or (values[i] == values[low] and fate[i] != HELD and fate[low] == HELD)
                )
                winner, loser = (i, low) if better else (low, i)
                if loser >= 0 and fate[loser] == HELD and fate[winner] == HELD:
                    below_due[winner] = min(below_due[winner], below_due[loser])
                if loser >= 0:
                    below_due[loser] = NEVER
                low = winner
        for due, best in ((above_due, high), (below_due, low)):
            if best >= 0:
                is_extreme[best] = True
                if fate[best] == HELD and due[best] < lasts[start]:
                    fate[best] = PUBLISHED
        for i in range(start, end):
            if fate[i] == HELD and not is_extreme[i]:
                fate[i] = DROPPED
    return is_extreme

"""Batch form for hopping and tumbling windows: the fewest tuples that hit each window's extremes.

A window is [k * slide, k * slide + size) for a whole number k, and the slide divides the size. (With an
offset, times are counted from it.) Time is divided into *panes* of one slide each. A window then is n = size
/ slide consecutive panes, and the time of a tuple is replaced by the number of its pane. Only the greatest
and the least tuple of a pane can be those of a window, and one of several equal tuples is enough.

With pane numbers as times, the rule for time ranges (`sweep`) with the interval n gives the right result.
Take a tuple between two greater tuples. Every window with this tuple contains one of the greater tuples
exactly if these are at most n panes apart. This is a bracket of that rule. A closed window of length n
contains n or n + 1 whole numbers. The windows with n of them are the windows here. The windows with n + 1 of
them don't need further tuples: their extremes are hit if those of the windows with n are hit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.kernels import njit
from tamis.omission.batch import retained_by_key
from tamis.omission.columns import (
    NEVER,
    Bools,
    Flags,
    Floats,
    Int64s,
    Sides,
    as_delay,
    check_rule,
    finite_order,
    int64s,
    same_length,
)
from tamis.row_order import by_key_and_time

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


def panes_in(slide: int, size: int) -> int:
    """The number of panes of a window. Raises `InputError` if the slide doesn't divide the size.

    >>> panes_in(10, 60)
    6
    """
    if slide < 1 or size < slide or size % slide:
        raise InputError(
            f"windows of size {size} every {slide} can't be cut into panes",
            hint="give a slide of at least 1 tick that divides the size",
        )
    if size > NEVER:
        raise InputError(f"windows of size {size} are too long", hint="give a size that fits in int64")
    return size // slide


def retained_in_windows(
    key_codes: npt.ArrayLike,
    times: npt.ArrayLike,
    values: npt.ArrayLike,
    slide: int,
    size: int,
    *,
    sides: Sides = "both",
    max_delay: int | None = None,
    offset: int = 0,
) -> Bools:
    """The tuples that must be retained. Each key is decided separately.

    Every window that contains a tuple contains a retained one with the window's greatest value
    (`sides="above"`), its least (`"below"`), or one of each. Without `max_delay` no smaller set does.

    `key_codes`, `times`: int64, in any order; `values`: numbers, not NaN; all of shape (n,). `slide`, `size`,
    `max_delay`, `offset`: ticks of event time; `slide == size` is a tumbling window. With
    `max_delay`, tuples are decided in order of time, and each tuple is decided by its deadline, or a tuple
    that replaces it; 0 retains all. Raises `InputError`.

    >>> retained_in_windows([0] * 5, [0, 3, 9, 10, 12], [1, 5, 2, 7, 3], 10, 10, sides="above").tolist()
    [False, True, False, True, False]
    """
    n = panes_in(slide, size)
    check_rule(n, sides, max_delay)
    keys, at, value = int64s("key_codes", key_codes), int64s("times", times), finite_order("values", values)
    same_length(key_codes=keys, times=at, values=value)
    at = at - offset
    panes = at // slide
    if max_delay is None:
        return retained_by_key(keys, panes, value, n, sides=sides)
    keep = np.ones(len(at), np.bool_)
    if max_delay == 0 or not len(at):
        return keep
    order = by_key_and_time(keys, at)
    rows = np.arange(len(at)) if order is None else order
    early, rest = _before_the_pane_ends(
        keys[rows], at[rows], panes[rows], value[rows], slide, sides, max_delay
    )
    # A pane is complete one slide after its start, and its tuples have come by then.
    left = max(0, max_delay // slide - 1)
    rest[rest] = retained_by_key(
        keys[rows][rest], panes[rows][rest], value[rows][rest], n, sides=sides, max_delay=left
    )
    keep[rows] = early | rest
    return keep


def _before_the_pane_ends(
    keys: Int64s,
    times: Int64s,
    panes: Int64s,
    values: npt.NDArray[np.float64],
    slide: int,
    sides: Sides,
    max_delay: int,
) -> tuple[Bools, Bools]:
    """Decide rows, ordered by key and time, within their panes: those whose deadline comes before their pane
    is complete, and the extremes of the panes.
    """
    delay = as_delay(max_delay)
    due = np.minimum(times, NEVER - delay) + delay
    ends = np.where(panes >= NEVER // slide, NEVER, (panes + 1) * slide)
    above, below = sides != "below", sides != "above"
    fate = np.full(len(keys), HELD)
    never = np.full(len(keys), NEVER)
    above_due, below_due = due if above else never, due.copy() if below else never.copy()
    kept = extremes(keys, panes, values, above_due, below_due, times, ends, above, below, fate)
    return fate == PUBLISHED, kept

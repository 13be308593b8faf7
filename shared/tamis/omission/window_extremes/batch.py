"""Batch form for hopping and tumbling windows: the fewest tuples that hit each window's extremes.

A window is [k * slide, k * slide + size) for a whole number k, and the slide divides the size. (With an
offset, times are counted from it.) Time is divided into *panes* of one slide each. A window then is n = size
/ slide consecutive panes, and the time of a tuple is replaced by the number of its pane.

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
from tamis.omission.batch import retained_by_key
from tamis.omission.columns import (
    Bools,
    Int64s,
    Sides,
    check_rule,
    finite_order,
    int64s,
    same_length,
)
from tamis.omission.ticks import NEVER, as_delay
from tamis.omission.window_extremes.panes import HELD, PUBLISHED, extremes
from tamis.row_order import by_key_and_time


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

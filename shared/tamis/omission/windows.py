"""The batch form for hopping and tumbling windows: the fewest tuples that hit each window's extremes.

A window is [k * slide, k * slide + size) for a whole number k, and the slide divides the size. In *panes* of
one slide each it is n = size / slide whole numbers side by side, and a tuple's pane is its time. A tuple that
is less than one on each side of it is in no window without them exactly if these two lie at most n panes
apart: that is a bracket of the rule of bands with n for the interval (`sweep`). Its closed windows of length
n over whole numbers hold n or n + 1 of them; those that hold n + 1 have their extremes hit where those that
hold n have, and those that hold n are the windows here. So the fewest tuples of the one rule are those of the
other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.omission.columns import (
    Bools,
    Int64s,
    Sides,
    check_rule,
    finite_order,
    int64s,
    same_length,
)
from tamis.omission.kernel import retained_by_key
from tamis.omission.order import by_key_and_time
from tamis.omission.panes import HELD, PUBLISHED, extremes
from tamis.omission.ticks import NEVER, as_delay


def panes_in(slide: int, size: int) -> int:
    """How many panes a window has. Raises `InputError` where the slide doesn't divide the size.

    >>> panes_in(10, 60)
    6
    """
    if slide < 1 or size < slide or size % slide:
        raise InputError(
            f"windows of size {size} every {slide}",
            hint="give a slide of at least 1 tick that divides the size",
        )
    if size > NEVER:
        raise InputError(f"windows of size {size}", hint="give a size that fits in int64")
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
) -> Bools:
    """Which tuples must be retained, of each key by itself.

    Every window that holds a tuple holds a retained one with the window's greatest value (`sides="above"`),
    its least (`"below"`), or one of each. Without `max_delay` no smaller set does.

    `key_codes`, `times`: int64, in any order; `values`: numbers, not NaN; all of shape (n,). `slide`, `size`,
    `max_delay`: ticks of event time; `slide == size` is a tumbling window. With `max_delay` tuples are
    decided in order of time, each or what stands for it by its deadline; 0 retains all. Raises `InputError`.

    >>> retained_in_windows([0] * 5, [0, 3, 9, 10, 12], [1, 5, 2, 7, 3], 10, 10, sides="above").tolist()
    [False, True, False, True, False]
    """
    n = panes_in(slide, size)
    check_rule(n, sides, max_delay)
    keys, at, value = int64s("key_codes", key_codes), int64s("times", times), finite_order("values", values)
    same_length(key_codes=keys, times=at, values=value)
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
    # A pane is complete a slide after its start; a tuple came then at the latest.
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
    """Of rows ordered by key and time: those whose deadline comes before their pane is complete, and the
    pane's extremes then."""
    delay = as_delay(max_delay)
    due = np.minimum(times, NEVER - delay) + delay
    ends = np.where(panes >= NEVER // slide, NEVER, (panes + 1) * slide)
    above, below = sides != "below", sides != "above"
    fate = np.full(len(keys), HELD)
    never = np.full(len(keys), NEVER)
    above_due, below_due = due if above else never, due.copy() if below else never.copy()
    kept = extremes(keys, panes, values, above_due, below_due, times, ends, above, below, fate)
    return fate == PUBLISHED, kept

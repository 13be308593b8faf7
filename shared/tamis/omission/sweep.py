"""One pass over tuples in order: which of them a bracket lets go.

**The rule.** Take one key, one side (above) and one value v. The windows whose maximum is v lie in the gaps
between tuples greater than v. In a gap (l, r) let p be the last retained tuple of value v (or l), i a tuple
of value v and j the next one (or r). Some window [a, a + L] in the gap holds i, but neither p nor j,
exactly if j - p > L. Retaining i in just these cases picks for every window that nothing hits yet the
*last* tuple that hits it: stabbing intervals with points, where this greedy choice is optimal. For both
sides the windows with maximum v and those with minimum v are two families of intervals over the same tuples
of value v, and values don't interact; so retaining i when either side asks for it, with p the last tuple
retained for whichever side, is optimal as well.

**Why brackets are enough.** A tuple with greater (or equal and retained) tuples on both sides, at most L
apart, is in no window without one of them; and what brackets is either retained or bracketed itself
(cai-2021, Theorem 3.1 and Lemma 3.2), so the pass may forget what it drops.

**The pass.** "Nearest greater to the left" is a monotonic stack of values. A tuple waits on the stack of
each side that still asks for it. It is looked at when a tuple at time t takes its place there (greater: its
bracket is complete; equal: its place is taken): if by then its reach has passed (t - l > L, or its deadline
lies before t), it was retained; if not, this side no longer asks, and the right bracket takes over its
deadline on this side, if that is earlier (the left bracket, being older, has an earlier one itself). What
no side asks for is dropped. Every tuple enters and leaves each stack once: linear time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.omission.columns import Bools, Floats, Int64s
from tamis.omission.ticks import NEVER

_ABOVE, _BELOW = np.uint8(1), np.uint8(2)  # the sides that still ask for a tuple
_RETAINED = np.uint8(4)


# One function without helpers: each call would cost a count of references per array, more than its work.
@njit(cache=True)
def sweep(
    keys: Int64s,
    times: Int64s,
    values: Floats,
    interval: np.uint64,
    above: bool,
    below: bool,
    strict: bool,
    max_delay: np.int64,
) -> Bools:
    """Which tuples are retained; rows ordered by key and time, `interval` > 0, clock: event time.

    `strict`: an equal tuple at another time neither brackets nor takes a place (the paper's Algorithm 1).
    `max_delay`: `NEVER` for none.
    """
    n = len(times)
    asks = np.zeros(n, np.uint8)
    delays = max_delay != NEVER
    # Of both sides one after the other, above from 0 and below from n: the tuple's deadline on this side,
    # its left bracket (-1 for none), and the stack.
    due = np.empty(2 * n if delays else 0, np.int64)
    left = np.empty(2 * n, np.int64)
    stack = np.empty(2 * n, np.int64)
    above_top, below_top = -1, n - 1
    end = 0
    while end < n:
        start = end
        key, now = keys[start], times[start]
        if start == 0 or key != keys[start - 1]:
            above_top, below_top = -1, n - 1
        # Of tuples with one time only the greatest and the least can be an extreme of a window, and one of
        # equals.
        greatest = least = start
        while end < n and times[end] == now and keys[end] == key:
            if values[end] > values[greatest]:
                greatest = end
            if values[end] < values[least]:
                least = end
            if delays:
                due[end] = due[n + end] = now + max_delay if now <= NEVER - max_delay else NEVER
            end += 1
        for side in range(2):
            if side == 0:
                if not above:
                    continue
                i, base, bit, sign, top = greatest, 0, _ABOVE, 1.0, above_top
            else:
                if not below:
                    continue
                i, base, bit, sign, top = least, n, _BELOW, -1.0, below_top
            value = sign * values[i]
            asks[i] |= bit
            bracket = -1
            while top >= base:
                q = stack[top]
                other = sign * values[q]
                if other > value:
                    bracket = q
                    break
                if other == value and strict:
                    bracket = left[base + q]
                    break
                ask = asks[q]
                if not ask & _RETAINED:
                    reached = False
                    if ask & _ABOVE:
                        at = left[q]
                        reached = at < 0 or bool(np.uint64(now) - np.uint64(times[at]) > interval)
                    if ask & _BELOW:
                        at = left[n + q]
                        if at < 0 or np.uint64(now) - np.uint64(times[at]) > interval:
                            reached = True
                    if delays:
                        for asked in range(2):
                            if ask & (1 << asked) and due[asked * n + q] < now:
                                reached = True
                    if reached:
                        asks[q] = ask | _RETAINED
                    else:
                        asks[q] = ask & ~bit
                        if delays:
                            due[base + i] = min(due[base + i], due[base + q])
                top -= 1
                if other == value:
                    bracket = q if asks[q] & _RETAINED else left[base + q]
                    break
            left[base + i] = bracket
            stack[top + 1] = i
            if side == 0:
                above_top = top + 1
            else:
                below_top = top + 1
    keep: Bools = asks != 0
    return keep

"""Decide tuples in one pass in order of time, by a monotonic stack of each side.

**The rule.** Take one key, the side *above*, and one value v. A window whose maximum is v contains no tuple
greater than v. So it lies in a gap between two neighbouring tuples l and r that are greater than v. Let i be
a tuple of value v in this gap. Let p be the last retained tuple of value v before i in the gap, or else l.
Let j be the next tuple of value v after i in the gap, or else r. A window of length L may contain i, but
neither p nor j, exactly if j - p > L. In this case i is retained.

This rule retains the smallest number of tuples. Each window must contain a retained tuple (it must be *hit*).
The rule chooses, for the first window that isn't hit yet, the *last* tuple that hits it. This is the optimal
greedy choice for stabbing intervals with points. With both sides, the windows with maximum v and the windows
with minimum v are two families of intervals over the same tuples of value v. Different values are
independent. So it is optimal to retain i if one of the sides needs it; p is then the last tuple that was
retained for either side.

**Why brackets are enough.** A tuple with greater (or equal and retained) tuples on both sides, at most L
apart, is in no window without one of them. A tuple that brackets others is retained or bracketed itself
(cai-2021, Theorem 3.1 and Lemma 3.2), so the pass may forget the tuples that it drops.

**The pass.** The nearest greater value to the left is found by a monotonic stack. A tuple waits on the stack
of each side that may still need it. A later tuple at time t pops it if the later tuple is greater (then the
bracket is complete) or equal (then it is the next tuple of value v).

- If t - l > L, or if the deadline of the popped tuple lies before t, the popped tuple is retained.
- Otherwise this side doesn't need the popped tuple any more. The later tuple inherits its deadline on this
  side, if that deadline is earlier than its own. (The left bracket is older, so its deadline is earlier
  anyway.)

A tuple that no side needs is dropped. Every tuple is pushed and popped once on each stack, so the time is
linear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tamis.kernels import njit
from tamis.omission.columns import NEVER, Bools, Flags, Floats, Int64s

F = TypeVar("F", bound=Callable[..., Any])

_ABOVE, _BELOW = 0, 1
# Bits of a tuple's state: bit 0 and 1 for the sides that ask for it, and whether it is retained.
_RETAINED = np.uint8(4)

# Inlined and without reference counts: a call would count references to each array, which takes longer than
# its work. `sweep` keeps the arrays alive.
_inlined: Callable[[F], F] = njit(cache=True, _nrt=False, forceinline=True)  # type: ignore[call-overload]


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
    """The tuples that are retained; rows ordered by key and time, `interval` > 0, clock: event time.

    `strict`: an equal tuple at another time neither brackets nor replaces a tuple (the paper's Algorithm 1).
    `max_delay`: `NEVER` for none.
    """
    n = len(times)
    state = np.zeros(n, np.uint8)
    delays = max_delay != NEVER
    # The columns of both sides in one array, above from 0 on and below from n on: a tuple's deadline on this
    # side, its left bracket (-1 for none), and the stack.
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
        # Of tuples with one time only the greatest and the least can be the extreme of a window, and one of
        # equal tuples is enough.
        greatest = least = start
        while end < n and times[end] == now and keys[end] == key:
            if values[end] > values[greatest]:
                greatest = end
            if values[end] < values[least]:
                least = end
            if delays:
                due[end] = due[n + end] = now + max_delay if now <= NEVER - max_delay else NEVER
            end += 1
        if above:
            above_top = _push(
                greatest, _ABOVE, above_top, times, values, interval, strict, delays, state, due, left, stack
            )
        if below:
            below_top = _push(
                least, _BELOW, below_top, times, values, interval, strict, delays, state, due, left, stack
            )
    keep: Bools = state != 0
    return keep


@_inlined
def _push(
    i: int,
    side: int,
    top: int,
    times: Int64s,
    values: Floats,
    interval: np.uint64,
    strict: bool,
    delays: bool,
    state: Flags,
    due: Int64s,
    left: Int64s,
    stack: Int64s,
) -> int:
    """Push tuple `i` on the stack of a side, and decide the tuples that it pops; returns the new top."""
    n = len(times)
    base, bit, sign = side * n, np.uint8(1 << side), 1.0 if side == _ABOVE else -1.0
    value = sign * values[i]
    state[i] |= bit
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
        asked = state[q]
        if not asked & _RETAINED:
            if _has_passed(q, asked, times[i], times, interval, delays, due, left):
                state[q] = asked | _RETAINED
            else:
                state[q] = asked & ~bit
                if delays:
                    due[base + i] = min(due[base + i], due[base + q])
        top -= 1
        if other == value:
            bracket = q if state[q] & _RETAINED else left[base + q]
            break
    left[base + i] = bracket
    stack[top + 1] = i
    return top + 1


@_inlined
def _has_passed(
    q: int,
    asked: np.uint8,
    now: np.int64,
    times: Int64s,
    interval: np.uint64,
    delays: bool,
    due: Int64s,
    left: Int64s,
) -> bool:
    """True if on a side that asks for it the tuple's last window, or its deadline, lies before `now`."""
    n = len(times)
    passed = False
    for side in range(2):
        if asked & np.uint8(1 << side):
            bracket = left[side * n + q]
            passed |= bool(bracket < 0 or np.uint64(now) - np.uint64(times[bracket]) > interval)
            if delays:
                passed |= bool(due[side * n + q] < now)
    return passed

"""The stream form's kernel: decide what the live tuples of the keys at hand allow.

**State.** Of each key the *live* tuples: the published ones and the held ones (undecided). What is dropped is
forgotten at once.

**Safe whatever the order of arrival.** The invariant: every window of length L that holds a tuple seen so
far holds a live one with the window's greatest value (and one with its least). A held tuple goes only when
live tuples on both sides of it, greater or equal to it and at most L apart, bracket it: every window with
it holds one of them. By the invariant a bracket of any tuples seen implies one of live tuples (cai-2021,
Theorem 3.1), so nothing is lost by forgetting. When all held tuples are decided, the published ones hit
every window.

**Few.** To the right an equal tuple brackets as soon as it is there, held or not: it takes the place of the
earlier one. To the left it brackets only when published; while it is still held, the later one waits for
it. In order this is the rule of the batch form (`sweep`), which is optimal.

**In time.** A tuple with no bracket within L before it is published at once. The others wait until the
watermark has passed their left bracket plus L (no right bracket can come any more) or their deadline has
come. A side that brackets cover hands its deadline to them, if it is earlier than theirs, so that
replacements can't chain past it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.omission.columns import Bools, Flags, Int64s
from tamis.omission.pool import ABOVE, BELOW, RETAINED, Tuples
from tamis.omission.ticks import NEVER, after, passed

HELD, PUBLISHED, DROPPED = np.uint8(0), np.uint8(1), np.uint8(2)


# Without helpers that take arrays: each would cost a count of references per array, more than the work
# itself.
@njit(cache=True)
def settle(
    live: Tuples,
    size: int,
    fate: Flags,
    index: Int64s,
    flags: Bools,
    interval: np.uint64,
    above: bool,
    below: bool,
    watermark: np.int64,
    now: np.int64,
) -> np.int64:
    """Decide the first `size` tuples of `live`: one key's, ordered by time.

    Fills `fate`; returns the event time that the watermark must pass before more can be decided.

    `index` (6 n) and `flags` (2 n) are scratch for `n >= size` tuples.
    """
    n = len(fate)
    times, values, asks = live.times, live.values, live.asks
    above_due, below_due = live.above_due, live.below_due
    # Parts of `index`, each for above from 0 and for below from n: the next tuple at least as extreme; the
    # stack of ever less extreme tuples to the left; and, 2 n behind each of its places, the left bracket of a
    # tuple equal to it. `flags`: whether a tuple equal to it waits for it.
    stack = 2 * n
    for i in range(size):
        fate[i] = PUBLISHED if asks[i] == RETAINED else HELD
    again = True
    wake = NEVER
    while again:
        again = False
        wake = NEVER
        for side in range(2):
            if not (above if side == 0 else below):
                continue
            sign = 1.0 if side == 0 else -1.0
            base, top = side * n, stack + side * n
            bottom = top
            for i in range(size):
                if fate[i] == DROPPED:
                    continue
                value = sign * values[i]
                while top > bottom and sign * values[index[top - 1]] <= value:
                    top -= 1
                    index[base + index[top]] = i
                index[top] = i
                top += 1
            while top > bottom:
                top -= 1
                index[base + index[top]] = -1
        above_top, below_top = stack, stack + n
        for i in range(size):
            if fate[i] == DROPPED:
                continue
            at = times[i]
            needed = False
            reach = NEVER
            above_place, below_place = above_top, below_top
            above_left = below_left = -1
            for side in range(2):
                if not (above if side == 0 else below):
                    continue
                sign = 1.0 if side == 0 else -1.0
                value = sign * values[i]
                low, high = stack + side * n, (above_top if side == 0 else below_top)
                bottom = low
                while low < high:  # the first place on the stack that isn't more extreme
                    middle = (low + high) // 2
                    if sign * values[index[middle]] > value:
                        low = middle + 1
                    else:
                        high = middle
                high = above_top if side == 0 else below_top
                equal = low < high and sign * values[index[low]] == value
                left = index[low + 2 * n] if equal else (index[low - 1] if low > bottom else -1)
                waits = equal and flags[low - stack]
                right = index[side * n + i]
                if side == 0:
                    above_place, above_left = low, left
                else:
                    below_place, below_left = low, left
                due = above_due if side == 0 else below_due
                bit = ABOVE if side == 0 else BELOW
                if fate[i] == PUBLISHED or (not asks[i] & bit and due[i] == NEVER):
                    continue
                # A tuple at the same time brackets by itself.
                left_beside = left >= 0 and times[left] == at
                right_beside = not left_beside and right >= 0 and times[right] == at
                bracketed = left_beside or right_beside
                if not bracketed and left >= 0 and right >= 0:
                    bracketed = np.uint64(times[right]) - np.uint64(times[left]) <= interval
                # A side once covered stays so, though its brackets may since be replaced or forgotten.
                if bracketed or not asks[i] & bit:
                    asks[i] &= ~bit
                    handed = due[i]
                    due[i] = NEVER
                    if left >= 0 and not right_beside and handed < due[left]:
                        due[left] = handed
                        again = again or (handed <= now and fate[left] == HELD)
                    if right >= 0 and not left_beside and handed < due[right]:
                        due[right] = handed
                elif left < 0 or np.uint64(at) - np.uint64(times[left]) > interval or due[i] <= now:
                    needed = True
                elif not waits:
                    if passed(watermark, times[left], interval):
                        needed = True
                    reach = min(reach, after(times[left], interval))
            if fate[i] == HELD:
                if asks[i] == 0:
                    fate[i] = DROPPED
                    continue
                if needed:
                    fate[i] = PUBLISHED
                else:
                    wake = min(wake, reach)
            held = fate[i] == HELD
            for side in range(2):
                if not (above if side == 0 else below):
                    continue
                place = above_place if side == 0 else below_place
                left = above_left if side == 0 else below_left
                index[place] = i
                index[place + 2 * n] = left if held else i
                flags[place - stack] = held
                if side == 0:
                    above_top = place + 1
                else:
                    below_top = place + 1
    return wake

"""The stream form's kernel: merge, decide, trim and put back the live tuples of the keys at hand.

**State.** Of each key the *live* tuples: the published ones and the held ones (undecided). What is dropped is
forgotten at once, and so is what is published and can bracket nothing any more.

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
from tamis.omission.pool import ABOVE, BELOW, RETAINED, Keys, Tuples
from tamis.omission.ticks import NEVER

# Numba's cache looks for changes only in the file of the function that is called: what these functions call
# is therefore in this file as well.

_HELD, _PUBLISHED, _DROPPED = np.uint8(0), np.uint8(1), np.uint8(2)


@njit(cache=True)
def _passed(watermark: np.int64, start: np.int64, length: np.uint64) -> bool:
    """Whether no tuple with a time up to `start + length` can come any more that isn't late."""
    return bool(
        watermark == NEVER or (watermark > start and np.uint64(watermark) - np.uint64(start) > length)
    )


@njit(cache=True)
def _after(start: np.int64, length: np.uint64) -> np.int64:
    """`start + length`, at most `NEVER`."""
    return np.int64(np.uint64(start) + length) if np.uint64(NEVER) - np.uint64(start) > length else NEVER


# Without helpers in the loops: each call would cost a count of references per array, more than its work.
@njit(cache=True)
def _settle(
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
        fate[i] = _PUBLISHED if asks[i] == RETAINED else _HELD
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
                if fate[i] == _DROPPED:
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
            if fate[i] == _DROPPED:
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
                if fate[i] == _PUBLISHED or (not asks[i] & bit and due[i] == NEVER):
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
                        again = again or (handed <= now and fate[left] == _HELD)
                    if right >= 0 and not left_beside and handed < due[right]:
                        due[right] = handed
                elif left < 0 or np.uint64(at) - np.uint64(times[left]) > interval or due[i] <= now:
                    needed = True
                elif not waits:
                    if _passed(watermark, times[left], interval):
                        needed = True
                    reach = min(reach, _after(times[left], interval))
            if fate[i] == _HELD:
                if asks[i] == 0:
                    fate[i] = _DROPPED
                    continue
                if needed:
                    fate[i] = _PUBLISHED
                else:
                    wake = min(wake, reach)
            held = fate[i] == _HELD
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


@njit(cache=True)
def _merge(
    keys: Keys, k: np.int64, pool: Tuples, fresh: Tuples, begin: np.int64, end: np.int64, live: Tuples
) -> None:
    """Key `k`'s live tuples and rows `begin` to `end` of `fresh`, both ordered by time, into `live`."""
    old, stop = keys.starts[k], keys.starts[k] + keys.counts[k]
    for i in range(stop - old + end - begin):
        if begin == end or (old < stop and pool.times[old] <= fresh.times[begin]):
            live.ids[i], live.times[i], live.values[i] = pool.ids[old], pool.times[old], pool.values[old]
            live.above_due[i], live.below_due[i] = pool.above_due[old], pool.below_due[old]
            live.asks[i] = pool.asks[old]
            old += 1
        else:
            live.ids[i], live.times[i], live.values[i] = (
                fresh.ids[begin],
                fresh.times[begin],
                fresh.values[begin],
            )
            live.above_due[i], live.below_due[i] = fresh.above_due[begin], fresh.below_due[begin]
            live.asks[i] = fresh.asks[begin]
            begin += 1


@njit(cache=True)
def _trim(
    live: Tuples,
    size: int,
    fate: Flags,
    interval: np.uint64,
    above: bool,
    below: bool,
    watermark: np.int64,
) -> None:
    """Drop, of what is published, what can bracket nothing any more.

    That is a tuple more than the interval behind the watermark: what it could bracket is decided. And a
    tuple behind the watermark and before all held ones, with a later such tuple as extreme as itself on
    each side: it can only be a left bracket, and the later one is nearer.
    """
    edge = 0  # behind it: not all behind the watermark and before all held tuples
    while edge < size and fate[edge] != _HELD and live.times[edge] < watermark:
        edge += 1
    greatest, least = -np.inf, np.inf
    some = False
    for i in range(edge - 1, -1, -1):
        if fate[i] == _DROPPED:
            continue
        value = live.values[i]
        hidden = some and (not above or value <= greatest) and (not below or value >= least)
        if hidden or _passed(watermark, live.times[i], interval):
            fate[i] = _DROPPED
        else:
            some = True
            greatest, least = max(greatest, value), min(least, value)


@njit(cache=True)
def advance(
    at: Int64s,
    keys: Keys,
    pool: Tuples,
    used: np.int64,
    bounds: Int64s,
    fresh: Tuples,
    live: Tuples,
    interval: np.uint64,
    above: bool,
    below: bool,
    watermark: np.int64,
    now: np.int64,
) -> tuple[np.int64, Int64s, Int64s]:
    """Decide what is live of the keys in rows `at` of `keys`, with rows `bounds[k]` to `bounds[k + 1]` of
    `fresh` new.

    Writes what stays live into the pool, of which `used` rows are taken and enough are free. `live` is room
    for the greatest number of tuples of one key. Returns the rows taken, and the handles of those published
    and dropped now.
    """
    fate = np.empty(len(live.ids), np.uint8)
    index = np.empty(6 * len(fate), np.int64)
    flags = np.empty(2 * len(fate), np.bool_)
    total = len(fresh.ids)
    for k in at:
        total += keys.counts[k]
    published, dropped = np.empty(total, np.int64), np.empty(total, np.int64)
    published_count = dropped_count = 0
    for turn in range(len(at)):
        k = at[turn]
        size = keys.counts[k] + bounds[turn + 1] - bounds[turn]
        _merge(keys, k, pool, fresh, bounds[turn], bounds[turn + 1], live)
        wake = _settle(live, size, fate, index, flags, interval, above, below, watermark, now)
        for i in range(size):
            if fate[i] == _DROPPED:
                dropped[dropped_count] = live.ids[i]
                dropped_count += 1
            elif fate[i] == _PUBLISHED and live.asks[i] != RETAINED:
                published[published_count] = live.ids[i]
                published_count += 1
                live.asks[i] = RETAINED
        _trim(live, size, fate, interval, above, below, watermark)
        count = 0
        for i in range(size):
            count += fate[i] != _DROPPED
        if count > keys.rooms[k]:
            keys.starts[k], keys.rooms[k] = used, 2 * count
            used += 2 * count
        to = keys.starts[k]
        oldest = due = NEVER
        for i in range(size):
            if fate[i] == _DROPPED:
                continue
            pool.ids[to], pool.times[to], pool.values[to] = live.ids[i], live.times[i], live.values[i]
            pool.above_due[to], pool.below_due[to] = live.above_due[i], live.below_due[i]
            pool.asks[to] = live.asks[i]
            to += 1
            if fate[i] == _HELD:
                oldest = min(oldest, live.times[i])
                due = min(due, live.above_due[i], live.below_due[i])
        keys.counts[k], keys.oldest[k], keys.due[k] = count, oldest, due
        # Looking at a key again when half of its tuples can be forgotten costs no more per tuple than
        # taking it in.
        if count > 0:
            wake = min(wake, _after(pool.times[keys.starts[k] + count // 2], interval))
        keys.wake[k] = wake
    return used, published[:published_count], dropped[:dropped_count]

"""One step of the stream form over the keys that it concerns: merge, decide, trim, put back."""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.omission.columns import Flags, Int64s
from tamis.omission.pool import RETAINED, Keys, Tuples
from tamis.omission.settle import DROPPED, HELD, PUBLISHED, settle
from tamis.omission.ticks import NEVER, after, passed


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
    while edge < size and fate[edge] != HELD and live.times[edge] < watermark:
        edge += 1
    greatest, least = -np.inf, np.inf
    some = False
    for i in range(edge - 1, -1, -1):
        if fate[i] == DROPPED:
            continue
        value = live.values[i]
        hidden = some and (not above or value <= greatest) and (not below or value >= least)
        if hidden or passed(watermark, live.times[i], interval):
            fate[i] = DROPPED
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
        wake = settle(live, size, fate, index, flags, interval, above, below, watermark, now)
        for i in range(size):
            if fate[i] == DROPPED:
                dropped[dropped_count] = live.ids[i]
                dropped_count += 1
            elif fate[i] == PUBLISHED and live.asks[i] != RETAINED:
                published[published_count] = live.ids[i]
                published_count += 1
                live.asks[i] = RETAINED
        _trim(live, size, fate, interval, above, below, watermark)
        count = 0
        for i in range(size):
            count += fate[i] != DROPPED
        if count > keys.rooms[k]:
            keys.starts[k], keys.rooms[k] = used, 2 * count
            used += 2 * count
        to = keys.starts[k]
        oldest = due = NEVER
        for i in range(size):
            if fate[i] == DROPPED:
                continue
            pool.ids[to], pool.times[to], pool.values[to] = live.ids[i], live.times[i], live.values[i]
            pool.above_due[to], pool.below_due[to] = live.above_due[i], live.below_due[i]
            pool.asks[to] = live.asks[i]
            to += 1
            if fate[i] == HELD:
                oldest = min(oldest, live.times[i])
                due = min(due, live.above_due[i], live.below_due[i])
        keys.counts[k], keys.oldest[k], keys.due[k] = count, oldest, due
        # Looking at a key again when half of its tuples can be forgotten costs no more per tuple than
        # taking it in.
        if count > 0:
            wake = min(wake, after(pool.times[keys.starts[k] + count // 2], interval))
        keys.wake[k] = wake
    return used, published[:published_count], dropped[:dropped_count]

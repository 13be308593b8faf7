"""Kernel of the stream form: decides new tuples, and the effects of a new watermark and clock, key by key.

**State.** Each key has *live* tuples. Those behind the watermark are final; among those ahead of it, other
tuples may still arrive.

**Behind the watermark** tuples are taken in order of time by the rule of the batch form (`sweep`). Each side
has a monotonic stack with the most extreme tuple at the bottom.

- A new tuple pops the tuples that it exceeds, and equal tuples that aren't published. On this side, each
  popped tuple is bracketed by the new tuple and by the tuple under it.
- The bottom of a stack is the extreme of a window that ends at the watermark, so it is published.
- The bottom is forgotten when it is further behind the watermark than the interval. The tuple above it then
  has no left bracket any more, becomes the bottom, and is published.

So all tuples of a stack are within one interval. A published tuple is kept only while it is the nearest
bracket of tuples to come, and a tuple that no side needs is forgotten. Each tuple is pushed and popped once
on each stack.

**Ahead of the watermark** a tuple without a left bracket within the interval is published at once. A side
no longer needs a tuple that has live brackets on both sides, at most the interval apart. This is safe in
any order of arrival: a bracket is itself live or bracketed by live tuples (cai-2021, Theorem 3.1 and Lemma
3.2). The stacks behind the watermark are continued for this, but only bracketed tuples are removed from
them.

**Deadlines.** A held tuple whose deadline has come is published. When a side no longer needs a tuple, its
brackets inherit its deadline if it is earlier than theirs, so that a chain of replacements can't exceed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tamis.kernels import njit
from tamis.omission.columns import NEVER, Int64s
from tamis.omission.slot_pool import (
    AHEAD,
    AT_ONCE,
    LISTS,
    RETAINED,
    SIDES,
    Decisions,
    Keys,
    NewTuples,
    Pool,
    Work,
)

F = TypeVar("F", bound=Callable[..., Any])

# All functions of the kernel are in this file, since Numba's cache checks only the file of the called
# function for changes. `advance` keeps all arrays alive: counting references to them in the functions that
# it calls would take ten times as long as everything else.
compiled: Callable[[F], F] = njit(cache=True, _nrt=False)  # type: ignore[call-overload]
# For functions that are called for every tuple: a call passes all arrays of `Work`, which takes longer than
# the function itself.
inlined: Callable[[F], F] = njit(cache=True, _nrt=False, forceinline=True)  # type: ignore[call-overload]


@compiled
def _longer_than(start: np.int64, end: np.int64, interval: np.uint64) -> bool:
    """True if `end` is more than `interval` after `start`; `start` isn't later."""
    return bool(np.uint64(end) - np.uint64(start) > interval)


@compiled
def _held(pool: Pool, slot: int) -> bool:
    return bool(not pool.needs[slot] & RETAINED)


@compiled
def _publish(pool: Pool, slot: int, out: Decisions) -> None:
    pool.needs[slot] |= RETAINED
    out.published[out.counts[0]] = pool.ids[slot]
    out.counts[0] += 1


@compiled
def _release(pool: Pool, slot: int, side: int, out: Decisions) -> None:
    """Note that a side no longer needs the tuple. If no side does, free its slot, and drop it if it is
    held.
    """
    needs = pool.needs[slot] & ~(1 << side)
    pool.needs[slot] = needs
    if not needs & SIDES:
        if not needs:
            out.dropped[out.counts[1]] = pool.ids[slot]
            out.counts[1] += 1
        pool.needs[slot] = 0
        pool.taken[0] -= 1
        pool.free[pool.taken[0]] = slot


@compiled
def _mark_bracketed(pool: Pool, slot: int, side: int, left: int, right: int, out: Decisions) -> None:
    """Release a held tuple that is bracketed on this side, by `left` and `right` or by one tuple at its own
    time (-1 for the other).
    """
    if pool.due.shape[1]:
        due = pool.due[side, slot]
        pool.due[side, slot] = NEVER
        if left >= 0:
            pool.due[side, left] = min(pool.due[side, left], due)
        if right >= 0:
            pool.due[side, right] = min(pool.due[side, right], due)
    _release(pool, slot, side, out)


@compiled
def _stays_under(pool: Pool, under: int, side: int, value: float, at: np.int64, held: bool) -> bool:
    """True if `under` stays on a side's stack when a tuple of this value, time and state is pushed."""
    other = pool.values[under]
    if value != other:
        return bool(other > value) == (side == 0)
    beside = pool.times[under] == at
    if _held(pool, under):
        return bool(beside and held)
    return bool(beside or held)


@compiled
def _expire(work: Work, k: int, now: np.int64, over: bool) -> None:
    """Forget the tuples that are in no window that ends at `now` or later, or all if the stream is over;
    publish the bottoms of the stacks.
    """
    keys, pool, places = work.keys, work.pool, work.places
    expiry = NEVER
    for side in range(AHEAD):
        while keys.counts[k, side]:
            bottom = places[keys.starts[k, side]]
            if _held(pool, bottom):
                _publish(pool, bottom, work.out)
            at = pool.times[bottom]
            if not over and not _longer_than(at, now, work.interval):
                if _longer_than(at, NEVER, work.interval):
                    expiry = min(expiry, np.int64(np.uint64(at) + work.interval))
                break
            _release(pool, bottom, side, work.out)
            keys.starts[k, side] += 1
            keys.rooms[k, side] -= 1
            keys.counts[k, side] -= 1
    keys.expiry[k] = expiry


@inlined
def _push_behind(work: Work, k: int, slot: int) -> None:
    """Push a tuple behind the watermark on the stacks of the sides that need it."""
    keys, pool, places, out = work.keys, work.pool, work.places, work.out
    at, value, held = pool.times[slot], pool.values[slot], _held(pool, slot)
    for side in range(AHEAD):
        start, count = keys.starts[k, side], keys.counts[k, side]
        if not pool.needs[slot] & (1 << side):
            # This tuple's brackets are nearer to tuples to come than the published tuples that it exceeds.
            while count:
                under = places[start + count - 1]
                exceeds = (value > pool.values[under]) if side == 0 else (value < pool.values[under])
                if _held(pool, under) or not exceeds:
                    break
                _release(pool, under, side, out)
                count -= 1
            keys.counts[k, side] = count
            continue
        while count and not _stays_under(pool, places[start + count - 1], side, value, at, held):
            count -= 1
            under = places[start + count]
            if _held(pool, under):
                left = places[start + count - 1] if count and pool.times[under] != at else -1
                _mark_bracketed(pool, under, side, left, slot, out)
            else:
                _release(pool, under, side, out)
        if count and pool.times[places[start + count - 1]] == at:
            if _held(pool, slot):
                _mark_bracketed(pool, slot, side, -1, places[start + count - 1], out)
            else:
                _release(pool, slot, side, out)
        else:
            places[start + count] = slot
            count += 1
            if count == 1:
                keys.expiry[k] = AT_ONCE
        keys.counts[k, side] = count


@inlined
def _top_ahead(work: Work, k: int, side: int, top: int, low: int) -> Any:
    """The tuple on top of a side's continued stack: of `top` tuples ahead of the watermark and `low` behind
    it; -1 where it is empty.
    """
    if top:
        return work.stack[side, top - 1]
    return work.places[work.keys.starts[k, side] + low - 1] if low else -1


@inlined
def _push_ahead(work: Work, k: int, i: int, side: int) -> None:
    """Push `work.line[i]`, a tuple ahead of the watermark, on the continued stack of a side that needs it."""
    pool, out, stack, ends, interval = work.pool, work.out, work.stack, work.ends, work.interval
    slot = work.line[i]
    at, value, held = pool.times[slot], pool.values[slot], _held(pool, slot)
    top, low = ends[0, side], ends[1, side]
    while True:
        under = _top_ahead(work, k, side, top, low)
        if under < 0 or _stays_under(pool, under, side, value, at, held):
            break
        if top:
            top -= 1
        else:
            low -= 1
        if _held(pool, under):
            left = _top_ahead(work, k, side, top, low)
            if pool.times[under] == at:
                _mark_bracketed(pool, under, side, -1, slot, out)
            elif left >= 0 and not _longer_than(pool.times[left], at, interval):
                _mark_bracketed(pool, under, side, left, slot, out)
    if under >= 0 and pool.times[under] == at:
        if _held(pool, slot):
            _mark_bracketed(pool, slot, side, -1, under, out)
    else:
        if under < 0 or _longer_than(pool.times[under], at, interval):
            stack[2, i] |= 1 << side
        stack[side, top] = slot
        top += 1
    ends[0, side], ends[1, side] = top, low


@compiled
def _bracket_ahead(work: Work, k: int, begin: int, end: int) -> None:
    """Bracket or publish `work.line[begin:end]`, a key's tuples ahead of the watermark in order of time."""
    keys, pool, places, out = work.keys, work.pool, work.places, work.out
    line, stack, ends = work.line, work.stack, work.ends
    ends[0, 0], ends[0, 1] = 0, 0
    ends[1, 0], ends[1, 1] = keys.counts[k, 0], keys.counts[k, 1]
    first = begin
    for i in range(begin, end):
        slot = line[i]
        stack[2, i] = 0
        for side in range(AHEAD):
            if pool.needs[slot] & (1 << side):
                _push_ahead(work, k, i, side)
        # A tuple at the same time can still bracket, so the tuples of one time are published together.
        if i + 1 == end or pool.times[line[i + 1]] != pool.times[slot]:
            for j in range(first, i + 1):
                if _held(pool, line[j]) and pool.needs[line[j]] & stack[2, j]:
                    _publish(pool, line[j], out)
            first = i + 1
    for side in range(AHEAD):
        start, count = keys.starts[k, side], ends[1, side]
        for place in range(start + count, start + keys.counts[k, side]):
            if pool.needs[places[place]] & (1 << side):
                places[start + count] = places[place]
                count += 1
        keys.counts[k, side] = count


@compiled
def _publish_due(work: Work, slots: Int64s) -> np.int64:
    """Publish the held tuples in `slots` that are due; returns the earliest deadline of the others."""
    pool = work.pool
    least = NEVER
    for slot in slots:
        if _held(pool, slot):
            due = min(pool.due[0, slot], pool.due[1, slot])
            if due <= work.now:
                _publish(pool, slot, work.out)
            else:
                least = min(least, due)
    return least


@compiled
def _merge_by_time(work: Work, k: int, new: NewTuples, begin: int, end: int) -> int:
    """Merge key `k`'s new tuples, rows `begin` to `end` of `new`, with those ahead of the watermark, in
    order of time, into `work.line`; gives the new tuples slots, and returns the number of all.
    """
    keys, pool, places, line = work.keys, work.pool, work.places, work.line
    old, stop = keys.starts[k, AHEAD], keys.starts[k, AHEAD] + keys.counts[k, AHEAD]
    size = 0
    while old < stop or begin < end:
        row = new.order[begin] if begin < end else -1
        if row < 0 or (old < stop and pool.times[places[old]] <= new.times[row]):
            line[size] = places[old]
            old += 1
        else:
            slot = pool.free[pool.taken[0]]
            pool.taken[0] += 1
            line[size] = slot
            pool.ids[slot], pool.times[slot] = new.ids[row], new.times[row]
            pool.values[slot], pool.needs[slot] = new.values[row], new.needs[row]
            if pool.due.shape[1]:
                for side in range(AHEAD):
                    pool.due[side, slot] = new.due[row] if new.needs[row] & (1 << side) else NEVER
                keys.due[k] = min(keys.due[k], new.due[row])
            begin += 1
        size += 1
    return size


@njit(cache=True)
def _compact_lists(keys: Keys, places: Int64s, more: int) -> tuple[Int64s, int]:
    """Move all lists to the front of a new column with room for at least `more` slots; returns the column,
    and the number of slots in use.
    """
    used = 0
    for k in range(len(keys.codes)):
        for which in range(LISTS):
            used += keys.counts[k, which]
    to = np.empty(2 * (used + more), np.int64)
    used = 0
    for k in range(len(keys.codes)):
        for which in range(LISTS):
            start, count = keys.starts[k, which], keys.counts[k, which]
            for i in range(count):
                to[used + i] = places[start + i]
            keys.starts[k, which], keys.rooms[k, which] = used, count
            used += count
    return to, used


@compiled
def _decide_key(work: Work, k: int, size: int, behind: int) -> None:
    """Decide a key whose lists have room. `behind` of its `size` tuples in `work.line` are behind the
    watermark.
    """
    keys, pool, places, line, watermark = work.keys, work.pool, work.places, work.line, work.watermark
    if keys.due[k] <= work.now:
        least = _publish_due(work, line[:size])
        for side in range(AHEAD):
            start = keys.starts[k, side]
            least = min(least, _publish_due(work, places[start : start + keys.counts[k, side]]))
        keys.due[k] = least
    for i in range(behind):
        at = pool.times[line[i]]
        if at > keys.expiry[k] and (i == 0 or at != pool.times[line[i - 1]]):
            _expire(work, k, at, False)
        _push_behind(work, k, line[i])
    if watermark > keys.expiry[k] or watermark == NEVER:
        _expire(work, k, watermark, watermark == NEVER)
    _bracket_ahead(work, k, behind, size)
    start = place = keys.starts[k, AHEAD]
    for i in range(behind, size):
        if pool.needs[line[i]]:
            places[place] = line[i]
            place += 1
    keys.counts[k, AHEAD] = place - start
    keys.wake[k] = keys.expiry[k]
    if place > start:
        keys.wake[k] = min(keys.wake[k], pool.times[places[start]])


@compiled
def _reserve(work: Work, k: int, behind: int, ahead: int, used: int) -> int:
    """Reserve room for `behind` more slots on each of key `k`'s stacks, and for `ahead` in the empty list of
    tuples ahead; returns the number of slots in use.
    """
    keys, places = work.keys, work.places
    for which in range(LISTS):
        count = keys.counts[k, which]
        need = ahead if which == AHEAD else count + behind
        if need > keys.rooms[k, which]:
            start = keys.starts[k, which]
            for i in range(count):
                places[used + i] = places[start + i]
            keys.starts[k, which], keys.rooms[k, which] = used, 2 * need
            used += 2 * need
    return used


@compiled
def _decide_keys(work: Work, new: NewTuples, k: int, row: int, used: int) -> tuple[int, int, int, int]:
    """Decide key `k` and those after it, with the new tuples from index `row` of their order on, until a key
    lacks room. Returns the key and row to continue with, and the numbers of slots in use and needed.
    """
    keys, pool, line, watermark = work.keys, work.pool, work.line, work.watermark
    for key in range(k, len(keys.codes)):
        end = row
        while end < len(new.order) and new.codes[new.order[end]] == keys.codes[key]:
            end += 1
        if row == end and keys.wake[key] >= watermark and keys.due[key] > work.now and watermark != NEVER:
            continue
        most = end - row + keys.counts[key, AHEAD]
        most = 2 * (keys.counts[key, 0] + keys.counts[key, 1] + 2 * most)
        if used + most > len(work.places):
            return key, row, used, most
        size = _merge_by_time(work, key, new, row, end)
        row = end
        behind = 0
        while behind < size and (pool.times[line[behind]] < watermark or watermark == NEVER):
            behind += 1
        keys.counts[key, AHEAD] = 0
        used = _reserve(work, key, behind, size - behind, used)
        _decide_key(work, key, size, behind)
    return len(keys.codes), row, used, 0


@njit(cache=True)
def advance(
    keys: Keys,
    pool: Pool,
    places: Int64s,
    used: int,
    new: NewTuples,
    interval: np.uint64,
    watermark: np.int64,
    now: np.int64,
) -> tuple[Int64s, int, Int64s, Int64s]:
    """Decide what follows from new tuples, the watermark and the clock.

    `keys` must contain the keys of `new`, and `pool` must have room for them. `places` holds the lists of
    slots; `used` entries of it are in use. No tuple of `new` is behind the watermark of the last call.
    Returns the new `places` and `used`, and the handles of the tuples published and dropped now.
    """
    most = pool.taken[0] + len(new.ids)
    out = Decisions(np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64))
    most = 0
    for k in range(len(keys.codes)):
        most = max(most, keys.counts[k, AHEAD])
    most += len(new.ids)
    line, stack, ends = np.empty(most, np.int64), np.empty((3, most), np.int64), np.empty((2, 2), np.int64)
    # For a constant 0 Numba would compile all functions that it is passed to once more.
    k = row = int(np.int64(0))
    while True:
        work = Work(keys, pool, places, out, line, stack, ends, interval, watermark, now)
        k, row, used, most = _decide_keys(work, new, k, row, used)
        if k == len(keys.codes):
            return places, used, out.published[: out.counts[0]], out.dropped[: out.counts[1]]
        places, used = _compact_lists(keys, places, most)

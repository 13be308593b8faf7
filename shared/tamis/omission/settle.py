"""The stream form's kernel: what new tuples and a new watermark decide, key by key.

**State.** Of each key the *live* tuples: those behind the watermark are final, and those ahead of it, among
which others may still come.

**Behind the watermark** the order is that of time, and the rule that of the batch form (`sweep`). Each side
has its stack of ever less extreme tuples. A tuple takes off what it is more extreme than (or equal to, if
that isn't published): on this side they are bracketed by it and by what lies under them. The bottom of a
stack is the extreme of a window that ends at the watermark: it is published, and forgotten when it lies
more than the interval behind; then what lies on it has no left bracket any more, and is published. So all
on a stack are within the interval of each other, a published tuple stays only while it is the nearest
bracket of what may still come, and what no side needs any more is forgotten. Each tuple enters and leaves
each stack once.

**Ahead of it** a tuple with no left bracket within the interval is published at once; one with live
brackets on both of its ends, at most the interval apart, is no longer needed on this side. That is safe in
any order of arrival: what brackets is itself live or bracketed by live tuples (cai-2021, Theorem 3.1 and
Lemma 3.2). The stacks behind are continued for this, but not changed: only what is bracketed leaves them.

**In time.** A held tuple whose deadline has come is published. A side that no longer needs a tuple hands its
deadline on to the brackets, if it is earlier than theirs, so that replacements can't chain past it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from tamis.omission.columns import Int64s
from tamis.omission.pool import AHEAD, AT_ONCE, LISTS, RETAINED, SIDES, Fresh, Keys, Out, Pool, Work
from tamis.omission.ticks import NEVER

F = TypeVar("F", bound=Callable[..., Any])

# Numba's cache looks for changes only in the file of the function that is called: what these functions call
# is therefore in this file as well. `advance` keeps all arrays alive: counting references to them in what it
# calls would take ten times as long as all else.
compiled: Callable[[F], F] = njit(cache=True, _nrt=False)  # type: ignore[call-overload]
# What is called for every tuple: a call would hand over all arrays of `Work`, which takes longer than what
# it does.
inlined: Callable[[F], F] = njit(cache=True, _nrt=False, forceinline=True)  # type: ignore[call-overload]


@compiled
def _apart(start: np.int64, end: np.int64, interval: np.uint64) -> bool:
    """Whether `end` lies more than `interval` after `start`, which isn't later."""
    return bool(np.uint64(end) - np.uint64(start) > interval)


@compiled
def _held(pool: Pool, slot: int) -> bool:
    return bool(not pool.needs[slot] & RETAINED)


@compiled
def _publish(pool: Pool, slot: int, out: Out) -> None:
    pool.needs[slot] |= RETAINED
    out.published[out.counts[0]] = pool.ids[slot]
    out.counts[0] += 1


@compiled
def _let_go(pool: Pool, slot: int, side: int, out: Out) -> None:
    """This side doesn't need the tuple any more; what none needs is forgotten, and dropped if it is held."""
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
def _cover(pool: Pool, slot: int, side: int, left: int, right: int, out: Out) -> None:
    """A held tuple is bracketed on this side: by `left` and `right`, or by one at its time alone (-1 for the
    other)."""
    if pool.due.shape[1]:
        due = pool.due[side, slot]
        pool.due[side, slot] = NEVER
        if left >= 0:
            pool.due[side, left] = min(pool.due[side, left], due)
        if right >= 0:
            pool.due[side, right] = min(pool.due[side, right], due)
    _let_go(pool, slot, side, out)


@compiled
def _stays(pool: Pool, under: int, side: int, value: float, at: np.int64, held: bool) -> bool:
    """Whether `under` stays on a side's stack when a tuple of this value, time and state comes to lie on
    it.
    """
    other = pool.values[under]
    if value != other:
        return bool(other > value) == (side == 0)
    beside = pool.times[under] == at
    if _held(pool, under):
        return bool(beside and held)
    return bool(beside or held)


@compiled
def _expire(work: Work, k: int, now: np.int64, over: bool) -> None:
    """Forget what no window that ends at `now` or later holds, or all if it is over; publish the bottoms."""
    keys, pool, places = work.keys, work.pool, work.places
    expiry = NEVER
    for side in range(AHEAD):
        while keys.counts[k, side]:
            bottom = places[keys.starts[k, side]]
            if _held(pool, bottom):
                _publish(pool, bottom, work.out)
            at = pool.times[bottom]
            if not over and not _apart(at, now, work.interval):
                if _apart(at, NEVER, work.interval):
                    expiry = min(expiry, np.int64(np.uint64(at) + work.interval))
                break
            _let_go(pool, bottom, side, work.out)
            keys.starts[k, side] += 1
            keys.rooms[k, side] -= 1
            keys.counts[k, side] -= 1
    keys.expiry[k] = expiry


@inlined
def _push(work: Work, k: int, slot: int) -> None:
    """Put a tuple behind the watermark on the stacks of its sides."""
    keys, pool, places, out = work.keys, work.pool, work.places, work.out
    at, value, held = pool.times[slot], pool.values[slot], _held(pool, slot)
    for side in range(AHEAD):
        start, count = keys.starts[k, side], keys.counts[k, side]
        if not pool.needs[slot] & (1 << side):
            # Its own brackets are nearer to what may still come than the published ones that it exceeds.
            while count:
                under = places[start + count - 1]
                exceeds = (value > pool.values[under]) if side == 0 else (value < pool.values[under])
                if _held(pool, under) or not exceeds:
                    break
                _let_go(pool, under, side, out)
                count -= 1
            keys.counts[k, side] = count
            continue
        while count and not _stays(pool, places[start + count - 1], side, value, at, held):
            count -= 1
            under = places[start + count]
            if _held(pool, under):
                left = places[start + count - 1] if count and pool.times[under] != at else -1
                _cover(pool, under, side, left, slot, out)
            else:
                _let_go(pool, under, side, out)
        if count and pool.times[places[start + count - 1]] == at:
            if _held(pool, slot):
                _cover(pool, slot, side, -1, places[start + count - 1], out)
            else:
                _let_go(pool, slot, side, out)
        else:
            places[start + count] = slot
            count += 1
            if count == 1:
                keys.expiry[k] = AT_ONCE
        keys.counts[k, side] = count


@compiled
def _look_ahead(work: Work, k: int, begin: int, end: int) -> None:
    """Settle `work.line[begin:end]`, a key's tuples ahead of the watermark in order of time."""
    keys, pool, places, out = work.keys, work.pool, work.places, work.out
    line, stack, ends, interval = work.line, work.stack, work.ends, work.interval
    ends[0, 0], ends[0, 1] = 0, 0
    ends[1, 0], ends[1, 1] = keys.counts[k, 0], keys.counts[k, 1]
    first = begin
    for i in range(begin, end):
        slot = line[i]
        at, value, held = pool.times[slot], pool.values[slot], _held(pool, slot)
        stack[2, i] = 0
        for side in range(AHEAD):
            if not pool.needs[slot] & (1 << side):
                continue
            start, top, low = keys.starts[k, side], ends[0, side], ends[1, side]
            while True:
                under = stack[side, top - 1] if top else places[start + low - 1] if low else -1
                if under < 0 or _stays(pool, under, side, value, at, held):
                    break
                if top:
                    top -= 1
                else:
                    low -= 1
                if _held(pool, under):
                    left = stack[side, top - 1] if top else places[start + low - 1] if low else -1
                    if pool.times[under] == at:
                        _cover(pool, under, side, -1, slot, out)
                    elif left >= 0 and not _apart(pool.times[left], at, interval):
                        _cover(pool, under, side, left, slot, out)
            if under >= 0 and pool.times[under] == at:
                if _held(pool, slot):
                    _cover(pool, slot, side, -1, under, out)
            else:
                if under < 0 or _apart(pool.times[under], at, interval):
                    stack[2, i] |= 1 << side
                stack[side, top] = slot
                top += 1
            ends[0, side], ends[1, side] = top, low
        if i + 1 == end or pool.times[line[i + 1]] != at:
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
def _overdue(work: Work, slots: Int64s) -> np.int64:
    """Publish the held ones of `slots` that are due; when the next of them is."""
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
def _line_up(work: Work, k: int, fresh: Fresh, begin: int, end: int) -> int:
    """Give rows `begin` to `end` of `fresh`, key `k`'s, slots, and put them in `work.line`, in order of time,
    with those that were ahead of the watermark; how many these are."""
    keys, pool, places, line = work.keys, work.pool, work.places, work.line
    old, stop = keys.starts[k, AHEAD], keys.starts[k, AHEAD] + keys.counts[k, AHEAD]
    size = 0
    while old < stop or begin < end:
        row = fresh.order[begin] if begin < end else -1
        if row < 0 or (old < stop and pool.times[places[old]] <= fresh.times[row]):
            line[size] = places[old]
            old += 1
        else:
            slot = pool.free[pool.taken[0]]
            pool.taken[0] += 1
            line[size] = slot
            pool.ids[slot], pool.times[slot] = fresh.ids[row], fresh.times[row]
            pool.values[slot], pool.needs[slot] = fresh.values[row], fresh.needs[row]
            if pool.due.shape[1]:
                for side in range(AHEAD):
                    pool.due[side, slot] = fresh.due[row] if fresh.needs[row] & (1 << side) else NEVER
                keys.due[k] = min(keys.due[k], fresh.due[row])
            begin += 1
        size += 1
    return size


@njit(cache=True)
def _moved(keys: Keys, places: Int64s, more: int) -> tuple[Int64s, int]:
    """All lists at the front of a new column with `more` places, or twice as many as are in use, behind them;
    where these begin."""
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
def _settle_key(work: Work, k: int, size: int, behind: int) -> None:
    """Settle a key whose lists have room: of its `size` tuples in line, `behind` are behind the watermark."""
    keys, pool, places, line, watermark = work.keys, work.pool, work.places, work.line, work.watermark
    if keys.due[k] <= work.now:
        least = _overdue(work, line[:size])
        for side in range(AHEAD):
            start = keys.starts[k, side]
            least = min(least, _overdue(work, places[start : start + keys.counts[k, side]]))
        keys.due[k] = least
    for i in range(behind):
        at = pool.times[line[i]]
        if at > keys.expiry[k] and (i == 0 or at != pool.times[line[i - 1]]):
            _expire(work, k, at, False)
        _push(work, k, line[i])
    if watermark > keys.expiry[k] or watermark == NEVER:
        _expire(work, k, watermark, watermark == NEVER)
    _look_ahead(work, k, behind, size)
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
def _make_room(work: Work, k: int, behind: int, ahead: int, used: int) -> int:
    """Have room for so many more on each of key `k`'s stacks, and on the list of those ahead, which is empty;
    how many places are in use then."""
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
def _settle(work: Work, fresh: Fresh, k: int, row: int, used: int) -> tuple[int, int, int, int]:
    """Settle key `k` and those after it, with the new tuples from place `row` of their order on, until one
    lacks places: returns the key and row to go on with, how many places are in use, and how many are
    needed.
    """
    keys, pool, line, watermark = work.keys, work.pool, work.line, work.watermark
    for key in range(k, len(keys.codes)):
        end = row
        while end < len(fresh.order) and fresh.codes[fresh.order[end]] == keys.codes[key]:
            end += 1
        if row == end and keys.wake[key] >= watermark and keys.due[key] > work.now and watermark != NEVER:
            continue
        most = end - row + keys.counts[key, AHEAD]
        most = 2 * (keys.counts[key, 0] + keys.counts[key, 1] + 2 * most)
        if used + most > len(work.places):
            return key, row, used, most
        size = _line_up(work, key, fresh, row, end)
        row = end
        behind = 0
        while behind < size and (pool.times[line[behind]] < watermark or watermark == NEVER):
            behind += 1
        keys.counts[key, AHEAD] = 0
        used = _make_room(work, key, behind, size - behind, used)
        _settle_key(work, key, size, behind)
    return len(keys.codes), row, used, 0


@njit(cache=True)
def advance(
    keys: Keys,
    pool: Pool,
    places: Int64s,
    used: int,
    fresh: Fresh,
    interval: np.uint64,
    watermark: np.int64,
    now: np.int64,
) -> tuple[Int64s, int, Int64s, Int64s]:
    """Decide what `fresh` tuples, the watermark and the clock decide.

    `keys` has those of `fresh`, and `pool` room for it; of `places`, where the lists are, `used` are in
    use. None of `fresh` is behind the watermark of the last call. Returns `places` and `used` anew, and the
    handles published and dropped now.
    """
    most = pool.taken[0] + len(fresh.ids)
    out = Out(np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64))
    most = 0
    for k in range(len(keys.codes)):
        most = max(most, keys.counts[k, AHEAD])
    most += len(fresh.ids)
    line, stack, ends = np.empty(most, np.int64), np.empty((3, most), np.int64), np.empty((2, 2), np.int64)
    # Of a constant 0 numba would compile all that it is passed to once more.
    k = row = int(np.int64(0))
    while True:
        work = Work(keys, pool, places, out, line, stack, ends, interval, watermark, now)
        k, row, used, most = _settle(work, fresh, k, row, used)
        if k == len(keys.codes):
            return places, used, out.published[: out.counts[0]], out.dropped[: out.counts[1]]
        places, used = _moved(keys, places, most)

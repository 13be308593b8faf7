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
from tamis.omission.pool import AHEAD, AT_ONCE, LISTS, RETAINED, SIDES, Fresh, Keys, Out, Pool
from tamis.omission.ticks import NEVER

F = TypeVar("F", bound=Callable[..., Any])

# Numba's cache looks for changes only in the file of the function that is called: what these functions call
# is therefore in this file as well. `advance` keeps all arrays alive: counting references to them in what it
# calls would take ten times as long as all else.
inlined: Callable[[F], F] = njit(cache=True, forceinline=True, _nrt=False)  # type: ignore[call-overload]


@inlined
def _apart(start: np.int64, end: np.int64, interval: np.uint64) -> bool:
    """Whether `end` lies more than `interval` after `start`, which isn't later."""
    return bool(np.uint64(end) - np.uint64(start) > interval)


@inlined
def _held(pool: Pool, slot: int) -> bool:
    return bool(not pool.needs[slot] & RETAINED)


@inlined
def _publish(pool: Pool, slot: int, out: Out) -> None:
    pool.needs[slot] |= RETAINED
    out.published[out.counts[0]] = pool.ids[slot]
    out.counts[0] += 1


@inlined
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


@inlined
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


@inlined
def _stays(pool: Pool, under: int, side: int, slot: int) -> bool:
    """Whether `under` stays on a side's stack when `slot` comes to lie on it."""
    sign = 1.0 if side == 0 else -1.0
    value, other = sign * pool.values[slot], sign * pool.values[under]
    if value != other:
        return bool(other > value)
    beside = pool.times[under] == pool.times[slot]
    if _held(pool, under):
        return bool(beside and _held(pool, slot))
    return bool(beside or _held(pool, slot))


@inlined
def _expire(
    pool: Pool, places: Int64s, keys: Keys, k: int, now: np.int64, over: bool, interval: np.uint64, out: Out
) -> None:
    """Forget what no window that ends at `now` or later holds, or all if it is over; publish the bottoms."""
    expiry = NEVER
    for side in range(AHEAD):
        while keys.counts[k, side]:
            bottom = places[keys.starts[k, side]]
            if _held(pool, bottom):
                _publish(pool, bottom, out)
            at = pool.times[bottom]
            if not over and not _apart(at, now, interval):
                if _apart(at, NEVER, interval):
                    expiry = min(expiry, np.int64(np.uint64(at) + interval))
                break
            _let_go(pool, bottom, side, out)
            keys.starts[k, side] += 1
            keys.rooms[k, side] -= 1
            keys.counts[k, side] -= 1
    keys.expiry[k] = expiry


@inlined
def _push(pool: Pool, places: Int64s, keys: Keys, k: int, slot: int, out: Out) -> None:
    """Put a tuple behind the watermark on the stacks of its sides."""
    at = pool.times[slot]
    for side in range(AHEAD):
        if not pool.needs[slot] & (1 << side):
            continue
        start, count = keys.starts[k, side], keys.counts[k, side]
        while count and not _stays(pool, places[start + count - 1], side, slot):
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


@inlined
def _look_ahead(
    pool: Pool,
    places: Int64s,
    keys: Keys,
    k: int,
    line: Int64s,
    begin: int,
    end: int,
    stack: Int64s,
    ends: Int64s,
    interval: np.uint64,
    out: Out,
) -> None:
    """Settle `line[begin:end]`, a key's tuples ahead of the watermark in order of time.

    Scratch: `stack`, of shape (3, `end` or more), for what comes to lie on the key's stacks and, in its last
    row, the sides on which a tuple has no left bracket; `ends`, of shape (2, 2), for how many of either lie
    there.
    """
    ends[0, 0], ends[0, 1] = 0, 0
    ends[1, 0], ends[1, 1] = keys.counts[k, 0], keys.counts[k, 1]
    first = begin
    for i in range(begin, end):
        slot = line[i]
        at = pool.times[slot]
        stack[2, i] = 0
        for side in range(AHEAD):
            if not pool.needs[slot] & (1 << side):
                continue
            start, top, low = keys.starts[k, side], ends[0, side], ends[1, side]
            while True:
                under = stack[side, top - 1] if top else places[start + low - 1] if low else -1
                if under < 0 or _stays(pool, under, side, slot):
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


@inlined
def _overdue(pool: Pool, slots: Int64s, now: np.int64, out: Out) -> np.int64:
    """Publish the held ones of `slots` that are due; when the next of them is."""
    least = NEVER
    for slot in slots:
        if _held(pool, slot):
            due = min(pool.due[0, slot], pool.due[1, slot])
            if due <= now:
                _publish(pool, slot, out)
            else:
                least = min(least, due)
    return least


@inlined
def _line_up(
    pool: Pool, places: Int64s, keys: Keys, k: int, fresh: Fresh, begin: int, end: int, line: Int64s
) -> int:
    """Give rows `begin` to `end` of `fresh`, key `k`'s, slots, and put them in `line`, in order of time, with
    those that were ahead of the watermark; how many these are."""
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


@inlined
def _visit(
    pool: Pool,
    places: Int64s,
    keys: Keys,
    k: int,
    line: Int64s,
    size: int,
    behind: int,
    stack: Int64s,
    ends: Int64s,
    interval: np.uint64,
    watermark: np.int64,
    now: np.int64,
    out: Out,
) -> None:
    """Settle a key whose lists have room: of its `size` tuples in `line`, `behind` are behind the
    watermark.
    """
    if keys.due[k] <= now:
        least = _overdue(pool, line[:size], now, out)
        for side in range(AHEAD):
            start = keys.starts[k, side]
            due = _overdue(pool, places[start : start + keys.counts[k, side]], now, out)
            least = min(least, due)
        keys.due[k] = least
    for i in range(behind):
        at = pool.times[line[i]]
        if at > keys.expiry[k] and (i == 0 or at != pool.times[line[i - 1]]):
            _expire(pool, places, keys, k, at, False, interval, out)
        _push(pool, places, keys, k, line[i], out)
    if watermark > keys.expiry[k] or watermark == NEVER:
        _expire(pool, places, keys, k, watermark, watermark == NEVER, interval, out)
    _look_ahead(pool, places, keys, k, line, behind, size, stack, ends, interval, out)
    start = place = keys.starts[k, AHEAD]
    for i in range(behind, size):
        if pool.needs[line[i]]:
            places[place] = line[i]
            place += 1
    keys.counts[k, AHEAD] = place - start
    keys.wake[k] = keys.expiry[k]
    if place > start:
        keys.wake[k] = min(keys.wake[k], pool.times[places[start]])


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
    rows = len(fresh.ids)
    most = pool.taken[0] + rows
    out = Out(np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64))
    over = watermark == NEVER
    line, stack, ends = np.empty(64, np.int64), np.empty((3, 64), np.int64), np.empty((2, 2), np.int64)
    end = 0
    for k in range(len(keys.codes)):
        begin = end
        while end < rows and fresh.codes[fresh.order[end]] == keys.codes[k]:
            end += 1
        if begin == end and keys.wake[k] >= watermark and keys.due[k] > now and not over:
            continue
        most = keys.counts[k, AHEAD] + end - begin
        if most > len(line):
            line, stack = np.empty(2 * most, np.int64), np.empty((3, 2 * most), np.int64)
        size = _line_up(pool, places, keys, k, fresh, begin, end, line)
        keys.counts[k, AHEAD] = behind = 0
        while behind < size and (over or pool.times[line[behind]] < watermark):
            behind += 1
        most = 2 * (keys.counts[k, 0] + keys.counts[k, 1] + behind + size)
        if used + most > len(places):
            places, used = _moved(keys, places, most)
        for which in range(LISTS):
            count = keys.counts[k, which]
            need = size - behind if which == AHEAD else count + behind
            if need > keys.rooms[k, which]:
                start = keys.starts[k, which]
                for i in range(count):
                    places[used + i] = places[start + i]
                keys.starts[k, which], keys.rooms[k, which] = used, 2 * need
                used += 2 * need
        _visit(pool, places, keys, k, line, size, behind, stack, ends, interval, watermark, now, out)
    return places, used, out.published[: out.counts[0]], out.dropped[: out.counts[1]]

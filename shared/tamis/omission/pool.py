"""Where the stream form keeps the live tuples of many keys: one pool of slots, and lists of slots by key."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from tamis.omission.columns import Bools, Flags, Floats, Int64s
from tamis.omission.ticks import NEVER

ABOVE, BELOW, RETAINED = np.uint8(1), np.uint8(2), np.uint8(4)
SIDES = np.uint8(ABOVE | BELOW)

T = TypeVar("T", bound=np.generic)

# A key's lists: the sides' stacks, above and below, and what is ahead of the watermark.
AHEAD, LISTS = 2, 3

AT_ONCE = np.int64(-(2**63))


class Pool(NamedTuple):
    """Columns of live tuples, one slot each: caller's handle, event time, value, deadlines (caller's clock)
    on the two sides, and which sides need it.

    `needs`: bits `ABOVE` and `BELOW`, of which none is left in a free slot; and `RETAINED` of a published
    tuple. `free`: a stack of the free slots, from place `taken[0]` on. `due` has no columns where nothing has
    a deadline.
    """

    ids: Int64s
    times: Int64s
    values: Floats
    due: Int64s
    needs: Flags
    free: Int64s
    taken: Int64s


def empty_pool() -> Pool:
    """A pool without slots."""
    none = np.empty(0, np.int64)
    due, needs = np.empty((2, 0), np.int64), np.empty(0, np.uint8)
    return Pool(none, none, np.empty(0, np.float64), due, needs, none, np.zeros(1, np.int64))


def with_room(pool: Pool, rows: int, delays: bool) -> Pool:
    """`pool` with at least `rows` free slots, and columns for deadlines if there are such (`delays`)."""
    taken, size = int(pool.taken[0]), len(pool.ids)
    if taken + rows <= size:
        return pool
    # Twice what is needed, so that moving all costs no more per tuple than taking it in.
    more = 2 * (taken + rows) - size
    return Pool(
        _longer(pool.ids, more),
        _longer(pool.times, more),
        _longer(pool.values, more),
        np.concatenate([pool.due, np.empty((2, more if delays else 0), np.int64)], axis=1),
        _longer(pool.needs, more),
        np.concatenate([pool.free, np.arange(size, size + more)]),
        pool.taken,
    )


def _longer(column: npt.NDArray[T], more: int) -> npt.NDArray[T]:
    return np.concatenate([column, np.zeros(more, column.dtype)])


def held_slots(pool: Pool) -> Int64s:
    """The slots of undecided tuples."""
    return np.flatnonzero((pool.needs > 0) & (pool.needs < RETAINED))


class Keys(NamedTuple):
    """Columns of keys: code (ascending); the event times that must be passed before the bottoms of its stacks
    change, and before the key has to be looked at again without new tuples; a time on the caller's clock
    before which none of its tuples is due; and of each of its lists (columns) the place of the first slot,
    the number of slots, and of those that it has room for.
    """

    codes: Int64s
    expiry: Int64s
    wake: Int64s
    due: Int64s
    starts: Int64s
    counts: Int64s
    rooms: Int64s


def no_keys() -> Keys:
    """Columns of no key."""
    none, lists = np.empty(0, np.int64), np.empty((0, LISTS), np.int64)
    return Keys(none, none, none, none, lists, lists, lists)


@njit(cache=True)
def _unknown(known: Int64s, codes: Int64s, order: Int64s) -> Int64s:
    """Those of `codes` (ascending in this order) that aren't among `known` (ascending), each once."""
    unknown = np.empty(len(order), np.int64)
    at = count = 0
    for i in range(len(order)):
        code = codes[order[i]]
        if i and code == codes[order[i - 1]]:
            continue
        while at < len(known) and known[at] < code:
            at += 1
        if at == len(known) or known[at] != code:
            unknown[count] = code
            count += 1
    return unknown[:count]


def with_keys(keys: Keys, codes: Int64s, order: Int64s) -> Keys:
    """`keys` and, where they aren't among them, those of `codes` (ascending in this order)."""
    new = _unknown(keys.codes, codes, order)
    if not len(new):
        return keys
    at = np.searchsorted(keys.codes, new)
    never, lists = np.full(len(new), NEVER), np.zeros((len(new), LISTS), np.int64)
    empty = Keys(new, never, never, never, lists, lists, lists)
    return Keys(*(np.insert(column, at, rows, axis=0) for column, rows in zip(keys, empty, strict=True)))


def with_tuples(keys: Keys) -> Bools:
    """Which of `keys` have live tuples."""
    above, below, ahead = keys.counts.T
    some: Bools = (above | below | ahead) > 0
    return some


class Fresh(NamedTuple):
    """Columns of new tuples: key code, handle, event time, value, deadline, and which sides need them; and
    the order of key, then time."""

    codes: Int64s
    ids: Int64s
    times: Int64s
    values: Floats
    due: Int64s
    needs: Flags
    order: Int64s


class Out(NamedTuple):
    """Handles published and dropped, and how many of each."""

    published: Int64s
    dropped: Int64s
    counts: Int64s


class Work(NamedTuple):
    """What one decision is about: all tuples, the rule, and scratch.

    `line`: one key's tuples that the watermark hadn't passed before, in order of time; `stack`, with three
    rows of the same length: what of those ahead comes to lie on the key's stacks and, in the last row, the
    sides on which a tuple has no left bracket within the interval; `ends`: how many lie there, on each
    side, and under them, of those that are behind.
    """

    keys: Keys
    pool: Pool
    places: Int64s
    out: Out
    line: Int64s
    stack: Int64s
    ends: Int64s
    interval: np.uint64
    watermark: np.int64
    now: np.int64

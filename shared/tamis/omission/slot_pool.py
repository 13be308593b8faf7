"""Object pool of the stream form's live tuples: slots in columns, and lists of slots by key."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.omission.columns import NEVER, Bools, Flags, Floats, Int64s

ABOVE, BELOW, RETAINED = np.uint8(1), np.uint8(2), np.uint8(4)
SIDES = np.uint8(ABOVE | BELOW)

T = TypeVar("T", bound=np.generic)

# The lists of a key: the stacks of the sides above and below, and the tuples ahead of the watermark.
AHEAD, LISTS = 2, 3

AT_ONCE = np.int64(-(2**63))


class Pool(NamedTuple):
    """Columns of live tuples, one slot each: caller's handle, event time, value, deadlines (caller's clock)
    on the two sides, and the sides that need it.

    `needs`: bits `ABOVE` and `BELOW` (a free slot has neither), and `RETAINED` for a published tuple.
    `free`: a stack of the free slots, from index `taken[0]` on. `due` has no columns where no tuple has a
    deadline.
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
    """The pool with at least `rows` free slots; with `delays` also columns for deadlines."""
    taken, size = int(pool.taken[0]), len(pool.ids)
    if taken + rows <= size:
        return pool
    # Twice the needed size, so that all moves together cost no more than taking in the tuples.
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
    """Columns of keys.

    `codes`: ascending. `expiry`: the event time that must be passed before the bottoms of the key's stacks
    change. `wake`: the event time that must be passed before the key has to be decided again without new
    tuples. `due`: a time on the caller's clock before which no tuple of the key is due. `starts`, `counts`,
    `rooms`: for each list of the key (columns) the index of its first slot, its length, and its capacity.
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
    """The values in `codes` (ascending in this order) that aren't in `known` (ascending), each once."""
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
    """The keys, with those of `codes` (ascending in this order) added where they are missing."""
    new = _unknown(keys.codes, codes, order)
    if not len(new):
        return keys
    at = np.searchsorted(keys.codes, new)
    never, lists = np.full(len(new), NEVER), np.zeros((len(new), LISTS), np.int64)
    empty = Keys(new, never, never, never, lists, lists, lists)
    return Keys(*(np.insert(column, at, rows, axis=0) for column, rows in zip(keys, empty, strict=True)))


def with_tuples(keys: Keys) -> Bools:
    """The mask of the keys that have live tuples."""
    above, below, ahead = keys.counts.T
    some: Bools = (above | below | ahead) > 0
    return some


class NewTuples(NamedTuple):
    """Columns of new tuples: key code, handle, event time, value, deadline, and the sides that need them; and
    the rows in order of key, then time.
    """

    codes: Int64s
    ids: Int64s
    times: Int64s
    values: Floats
    due: Int64s
    needs: Flags
    order: Int64s


class Decisions(NamedTuple):
    """Handles of the tuples published and dropped, and the number of each."""

    published: Int64s
    dropped: Int64s
    counts: Int64s


class Work(NamedTuple):
    """Arguments of one call of the kernel: all tuples, the rule, and working memory for one key.

    `line`: the key's tuples that the watermark hadn't passed before, in order of time. `stack`: three rows of
    the same length: the continuation of the key's two stacks by tuples ahead of the watermark, and the sides
    on which a tuple has no left bracket within the interval. `ends`: for each side the length of the
    continuation, and of the part of the stack under it.
    """

    keys: Keys
    pool: Pool
    places: Int64s
    out: Decisions
    line: Int64s
    stack: Int64s
    ends: Int64s
    interval: np.uint64
    watermark: np.int64
    now: np.int64

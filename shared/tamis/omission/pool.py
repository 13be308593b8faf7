"""Where the stream form keeps the live tuples of many keys: one pool of columns, with a stretch of it for
each key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tamis.omission.columns import Flags, Floats, Int64s
from tamis.omission.ticks import NEVER

ABOVE, BELOW, RETAINED = np.uint8(1), np.uint8(2), np.uint8(4)


class Tuples(NamedTuple):
    """Columns of tuples: caller's handle, event time, value, deadline (caller's clock) of each side, and
    which sides ask for it.

    `asks`: bits `ABOVE` and `BELOW` of a held tuple, `RETAINED` of a published one.
    """

    ids: Int64s
    times: Int64s
    values: Floats
    above_due: Int64s
    below_due: Int64s
    asks: Flags


def room(size: int) -> Tuples:
    """Columns for `size` tuples, not filled."""
    return Tuples(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.float64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.uint8),
    )


def join(parts: list[Tuples]) -> Tuples:
    """The rows of all `parts`, one part after the other."""
    return Tuples._make(np.concatenate(column) for column in zip(*parts, strict=True))


def take(tuples: Tuples, rows: Int64s) -> Tuples:
    """The given rows of `tuples`."""
    return Tuples._make(column[rows] for column in tuples)


class Keys(NamedTuple):
    """Columns of keys: code (ascending) and, in the pool, place, number and room of its live tuples; then,
    over its held tuples, least event time and earliest deadline (`NEVER` for none); and the event time that
    the watermark must pass before the key has to be looked at again without new tuples."""

    codes: Int64s
    starts: Int64s
    counts: Int64s
    rooms: Int64s
    oldest: Int64s
    due: Int64s
    wake: Int64s


def no_keys() -> Keys:
    """Columns of no key."""
    return Keys(*(np.empty(0, np.int64) for _ in Keys._fields))


def with_keys(keys: Keys, codes: Int64s) -> Keys:
    """`keys` and, where they aren't among them, those of `codes` (ascending), without tuples."""
    at = np.searchsorted(keys.codes, codes)
    new = at == len(keys.codes)
    new[~new] = keys.codes[at[~new]] != codes[~new]
    if not new.any():
        return keys
    empty = {"codes": codes[new], "oldest": NEVER, "due": NEVER, "wake": NEVER}
    return Keys(
        *(
            np.insert(column, at[new], empty.get(name, 0))
            for name, column in zip(Keys._fields, keys, strict=True)
        )
    )


def without_empty(keys: Keys) -> Keys:
    """`keys` that have live tuples."""
    some = keys.counts > 0
    return Keys(*(column[some] for column in keys))


@njit(cache=True)
def pack(keys: Keys, pool: Tuples, to: Tuples) -> np.int64:
    """Move all live tuples to the front of `to`, with no room between; returns where they end."""
    end = np.int64(0)
    for k in range(len(keys.codes)):
        start, count = keys.starts[k], keys.counts[k]
        for i in range(start, start + count):
            to.ids[end + i - start] = pool.ids[i]
            to.times[end + i - start] = pool.times[i]
            to.values[end + i - start] = pool.values[i]
            to.above_due[end + i - start] = pool.above_due[i]
            to.below_due[end + i - start] = pool.below_due[i]
            to.asks[end + i - start] = pool.asks[i]
        keys.starts[k], keys.rooms[k] = end, count
        end += count
    return end


@njit(cache=True)
def held(keys: Keys, pool: Tuples) -> tuple[Int64s, Int64s]:
    """Handles and event times of all held tuples."""
    number = 0
    for k in range(len(keys.codes)):
        if keys.oldest[k] != NEVER:
            number += keys.counts[k]
    ids, times = np.empty(number, np.int64), np.empty(number, np.int64)
    number = 0
    for k in range(len(keys.codes)):
        if keys.oldest[k] != NEVER:
            for i in range(keys.starts[k], keys.starts[k] + keys.counts[k]):
                if pool.asks[i] != RETAINED:
                    ids[number], times[number] = pool.ids[i], pool.times[i]
                    number += 1
    return ids[:number], times[:number]


@njit(cache=True)
def mark_published(keys: Keys, pool: Tuples, ids: Int64s) -> None:
    """Held tuples among `ids` (ascending, not empty) are published from now on."""
    for k in range(len(keys.codes)):
        if keys.oldest[k] == NEVER:
            continue
        oldest = due = NEVER
        for i in range(keys.starts[k], keys.starts[k] + keys.counts[k]):
            if pool.asks[i] == RETAINED:
                continue
            if ids[0] <= pool.ids[i] <= ids[-1]:
                at = np.searchsorted(ids, pool.ids[i])
                if ids[at] == pool.ids[i]:
                    pool.asks[i] = RETAINED
                    continue
            oldest = min(oldest, pool.times[i])
            due = min(due, pool.above_due[i], pool.below_due[i])
        keys.oldest[k], keys.due[k] = oldest, due

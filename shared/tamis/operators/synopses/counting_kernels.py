"""Compiled inner loops of `counting`.

Tuple by tuple, each new tuple is joined with the buckets that exist, and then counted in its own bucket.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit
from tamis.operators.synopses.kernels import slot_of

Ints = NDArray[np.int64]


class Program(NamedTuple):
    """The conditions between n occurrences. A new tuple at one of them is joined with the others in an order;
    each of these is looked up in an index, by values that follow from what was chosen before.
    """

    order: Ints  # (n, n): the occurrence at each place of the order
    lookup: Ints  # (n, n): the index in which it is looked up
    given: Ints  # (n, n, m, 4): each value as occurrence, column and distance, which has two words
    checks: Ints  # (c, 6): occurrence and column of left and right, bound of left - right in two words
    check_at: Ints  # (n, n, 2): from which check to which
    of: Ints  # (k,): the occurrence that an index is of
    link: Ints  # (k,): which one of its occurrence's it is
    parts: Ints  # (k,): by how many values it looks up
    columns: Ints  # (k, m): the columns of these


class Buckets(NamedTuple):
    """All buckets, by occurrence and number, and what a lookup finds: a chain of them, in their order."""

    values: Ints  # (n, b, columns), of the first tuple
    counts: Ints  # (n, b): 0 before the first tuple
    last: Ints  # (n, b): the event of this batch that was counted last, or -1
    following: Ints  # (n, b, links): the next of the chain, or -1
    table: Ints  # a hash table of chains
    keys: Ints  # (chains, 1 + m): index and values
    head: Ints  # (chains,)
    tail: Ints  # (chains,)
    chains: Ints  # (1,): how many there are


class Events(NamedTuple):
    """Tuples at occurrences, in their order."""

    occurrence: Ints  # (e,)
    bucket: Ints  # (e,): -1 where nothing can join the tuple
    values: Ints  # (e, columns)


class Found(NamedTuple):
    """Room for combinations: the event, and at each occurrence the bucket (-1 for the new tuple itself), and
    how many tuples it has and which event was counted last in it, at that time.
    """

    event: Ints  # (r,)
    bucket: Ints  # (r, n)
    counts: Ints  # (r, n)
    last: Ints  # (r, n)


@njit(cache=True)
def _plus(value: int, high: int, low: int):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The sum with a number of two words, as two words."""
    total = value + low
    if value >= 0 and low >= 0 and total < 0:
        high += 1
    elif value < 0 and low < 0 and total >= 0:
        high -= 1
    return high, total


@njit(cache=True)
def _first(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    program: Program,
    buckets: Buckets,
    own: int,
    place: int,
    fresh: Ints,
    chosen: Ints,
    key: Ints,
):
    """The first bucket that a lookup finds, or -1."""
    index = program.lookup[own, place]
    key[:] = 0
    key[0] = index
    for part in range(program.parts[index]):
        other, column = program.given[own, place, part, 0], program.given[own, place, part, 1]
        value = fresh[column] if other == own else buckets.values[other, chosen[other], column]
        high, key[part + 1] = _plus(
            value, program.given[own, place, part, 2], program.given[own, place, part, 3]
        )
        if high != 0:
            return np.int64(-1)
    chain = buckets.table[slot_of(buckets.table, buckets.keys, key)]
    return buckets.head[chain] if chain >= 0 else np.int64(-1)


@njit(cache=True)
def _hold(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    program: Program, buckets: Buckets, own: int, place: int, fresh: Ints, chosen: Ints
):
    """True if the entry chosen at a place of the order satisfies the conditions with the entries chosen
    before.
    """
    for at in range(program.check_at[own, place, 0], program.check_at[own, place, 1]):
        check = program.checks[at]
        left = fresh[check[1]] if check[0] == own else buckets.values[check[0], chosen[check[0]], check[1]]
        right = fresh[check[3]] if check[2] == own else buckets.values[check[2], chosen[check[2]], check[3]]
        high, most = _plus(right, check[4], check[5])
        if high < 0 or (high == 0 and left > most):
            return False
    return True


@njit(cache=True)
def _insert(  # noqa: PLR0917 - compiled, it takes no names
    program: Program,
    buckets: Buckets,
    own: int,
    bucket: int,
    fresh: Ints,
    count: int,
    key: Ints,
) -> None:  # pragma: no cover - compiled
    """Count tuples in a bucket, which is entered in all indexes when it is new."""
    if buckets.counts[own, bucket] == 0:
        buckets.values[own, bucket] = fresh
        for index in range(len(program.of)):
            if program.of[index] != own:
                continue
            key[:] = 0
            key[0] = index
            for part in range(program.parts[index]):
                key[part + 1] = fresh[program.columns[index, part]]
            slot = slot_of(buckets.table, buckets.keys, key)
            chain = buckets.table[slot]
            link = program.link[index]
            buckets.following[own, bucket, link] = -1
            if chain < 0:
                chain = buckets.chains[0]
                buckets.chains[0] += 1
                buckets.table[slot] = chain
                buckets.keys[chain] = key
                buckets.head[chain] = bucket
            else:
                buckets.following[own, buckets.tail[chain], link] = bucket
            buckets.tail[chain] = bucket
    buckets.counts[own, bucket] += count


@njit(cache=True)
def restored(
    program: Program, buckets: Buckets, own: int, values: Ints, counts: Ints
) -> None:  # pragma: no cover - compiled
    """Put back the buckets of an occurrence, in their order."""
    key = np.empty(buckets.keys.shape[1], np.int64)
    for bucket in range(len(counts)):
        _insert(program, buckets, own, bucket, values[bucket], counts[bucket], key)


@njit(cache=True)
def joined(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    program: Program, buckets: Buckets, events: Events, found: Found, start: int, used: int
):
    """Take events, from `start` on, and write what they join into `found`, from `used` on. Returns the event
    for whose combinations there was no room, or the end, and how many combinations there are before it.
    """
    count = len(program.order)
    cursor, chosen = np.empty(count, np.int64), np.empty(count, np.int64)
    key = np.empty(buckets.keys.shape[1], np.int64)
    for event in range(start, len(events.occurrence)):
        own, fresh = events.occurrence[event], events.values[event]
        before = used
        place = 1
        cursor[1] = _first(program, buckets, own, 1, fresh, chosen, key)
        while place > 0:
            here = program.order[own, place]
            bucket = cursor[place]
            if bucket < 0:
                place -= 1
                if place > 0:
                    link = program.link[program.lookup[own, place]]
                    cursor[place] = buckets.following[program.order[own, place], cursor[place], link]
                continue
            chosen[here] = bucket
            if _hold(program, buckets, own, place, fresh, chosen):
                if place < count - 1:
                    place += 1
                    cursor[place] = _first(program, buckets, own, place, fresh, chosen, key)
                    continue
                if used == len(found.event):
                    return event, before
                found.event[used] = event
                for one in range(count):
                    if one == own:
                        found.bucket[used, one], found.counts[used, one] = -1, 1
                        found.last[used, one] = event
                    else:
                        found.bucket[used, one] = chosen[one]
                        found.counts[used, one] = buckets.counts[one, chosen[one]]
                        found.last[used, one] = buckets.last[one, chosen[one]]
                used += 1
            cursor[place] = buckets.following[here, bucket, program.link[program.lookup[own, place]]]
        bucket = events.bucket[event]
        if bucket >= 0:
            _insert(program, buckets, own, bucket, fresh, 1, key)
            buckets.last[own, bucket] = event
    return len(events.occurrence), used

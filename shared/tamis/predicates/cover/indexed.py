"""The paper's three strategies of splitting with an index over the boxes (kuntschke-2006, section 3.6),
compiled.

The index is a bitmap: for each dimension and cut, the boxes that begin before it, and those that end behind
it. Those that meet a part are found by two look-ups a dimension and ANDing the sets. A part masks the boxes
that it has been split by, which are all up to a number, and nothing is reorganised: what the paper asks of
an index so that DFS and MIX gain by it, too. A part that no box meets any more ends the search.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tamis.predicates.bits import first_bit
from tamis.predicates.cover.split import COVERED, MOST_PARTS, OPEN, SPENT, room, split

Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]


@numba.njit(cache=True, nogil=True)
def _index(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> tuple[Words, Words]:
    """Of shape (d, cuts, words): the boxes that begin before a cut, and those that end behind it."""
    boxes, dimensions = lower.shape
    cuts = 0
    for d in range(dimensions):
        cuts = max(cuts, hi[d] + 1)
        for box in range(boxes):
            cuts = max(cuts, upper[box, d] + 1)
    words = (boxes + 63) // 64
    begun = np.zeros((dimensions, cuts, words), np.uint64)
    open_ = np.zeros((dimensions, cuts, words), np.uint64)
    for d in range(dimensions):
        for box in range(boxes):
            bit = np.uint64(1) << np.uint64(box % 64)
            begun[d, lower[box, d] + 1, box // 64] |= bit
            open_[d, upper[box, d] - 1, box // 64] |= bit
        for cut in range(1, cuts):
            for word in range(words):
                begun[d, cut, word] |= begun[d, cut - 1, word]
        for cut in range(cuts - 2, -1, -1):
            for word in range(words):
                open_[d, cut, word] |= open_[d, cut + 1, word]
    return begun, open_


@numba.njit(cache=True, nogil=True)
def _next(lo: Int32s, hi: Int32s, box: int, begun: Words, open_: Words) -> int:
    """The first box from `box` on that meets a part; -1 where there is none."""
    words = begun.shape[2]
    for word in range(box // 64, words):
        found = ~np.uint64(0)
        if word == box // 64:
            found <<= np.uint64(box % 64)
        for d in range(len(lo)):
            found &= begun[d, hi[d], word] & open_[d, lo[d], word]
            if found == 0:
                break
        if found != 0:
            return word * 64 + first_bit(found)
    return -1


@numba.njit(cache=True, nogil=True)
def breadth_first_indexed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """BFS: every part of a level by the next box that meets it, then the level of what is left."""
    d = len(lo)
    if len(lower) == 0:
        return OPEN
    begun, open_ = _index(lo, hi, lower, upper)
    los, his, at = np.empty((1, d), np.int32), np.empty((1, d), np.int32), np.zeros((1, 1), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    while n:
        spent += n
        if spent > budget:
            return SPENT
        next_los, next_his = np.empty((2 * n + 2 * d, d), np.int32), np.empty((2 * n + 2 * d, d), np.int32)
        next_at = np.empty((2 * n + 2 * d, 1), np.int32)
        m = 0
        for part in range(n):
            box = _next(los[part], his[part], at[part, 0], begun, open_)
            if box < 0:
                return OPEN
            wanted = m + 2 * d
            if wanted > MOST_PARTS:
                return SPENT
            next_los, next_his, next_at = (
                room(next_los, wanted),
                room(next_his, wanted),
                room(next_at, wanted),
            )
            first = m
            m = split(los[part], his[part], lower[box], upper[box], next_los, next_his, m)
            next_at[first:m, 0] = box + 1
        los, his, at, n = next_los, next_his, next_at, m
    return COVERED


@numba.njit(cache=True, nogil=True)
def depth_first_indexed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """DFS: one part by the next box that meets it, then what is left of it."""
    d = len(lo)
    if len(lower) == 0:
        return OPEN
    begun, open_ = _index(lo, hi, lower, upper)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    at = np.zeros((2 * d + 1, 1), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    while n:
        spent += 1
        if spent > budget:
            return SPENT
        n -= 1
        part_lo, part_hi = los[n].copy(), his[n].copy()
        box = _next(part_lo, part_hi, at[n, 0], begun, open_)
        if box < 0:
            return OPEN
        los, his, at = room(los, n + 2 * d), room(his, n + 2 * d), room(at, n + 2 * d)
        m = split(part_lo, part_hi, lower[box], upper[box], los, his, n)
        at[n:m, 0] = box + 1
        n = m
    return COVERED


@numba.njit(cache=True, nogil=True)
def mixed_indexed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """MIX: all parts of one split, each by the next box that meets it, then the parts of each."""
    d = len(lo)
    if len(lower) == 0:
        return OPEN
    begun, open_ = _index(lo, hi, lower, upper)
    los, his = np.empty((4 * d + 1, d), np.int32), np.empty((4 * d + 1, d), np.int32)
    begins, at = np.zeros((4, 1), np.int32), np.zeros((4, 1), np.int32)
    los[0], his[0] = lo, hi
    n, groups, spent = 1, 1, 0
    while groups:
        groups -= 1
        begin, after = begins[groups, 0], at[groups, 0]
        members = n - begin
        spent += members
        if spent > budget:
            return SPENT
        old_los, old_his = los[begin:n].copy(), his[begin:n].copy()
        n = begin
        begins, at = room(begins, groups + members + 1), room(at, groups + members + 1)
        for part in range(members):
            box = _next(old_los[part], old_his[part], after, begun, open_)
            if box < 0:
                return OPEN
            los, his = room(los, n + 2 * d), room(his, n + 2 * d)
            first = n
            n = split(old_los[part], old_his[part], lower[box], upper[box], los, his, n)
            if n > first:
                begins[groups, 0], at[groups, 0] = first, box + 1
                groups += 1
    return COVERED

"""The paper's strategies of splitting, compiled: BFS, DFS and MIX (kuntschke-2006, Algorithms 10 to 12).

A part is compared with one box after the other, and is split by each box that overlaps it. With an index,
only overlapping boxes are visited. If a part remains after the last box, the box isn't covered, and the
search ends.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.predicates.cover.index import following, index
from tamis.predicates.cover.split import (
    COVERED,
    MOST_PARTS,
    OPEN,
    SPENT,
    Int32s,
    overlap,
    split,
    with_room,
)


@njit(cache=True, nogil=True)
def breadth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """BFS, Algorithm 10: in each round, every remaining part is split by its next box."""
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
    los, his, at = np.empty((1, d), np.int32), np.empty((1, d), np.int32), np.zeros((1, 1), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    while n:
        spent += n
        if spent > budget:
            return SPENT
        next_los, next_his = np.empty((n + 2 * d, d), np.int32), np.empty((n + 2 * d, d), np.int32)
        next_at = np.empty((n + 2 * d, 1), np.int32)
        m = int(np.int64(0))  # of a constant numba would compile `split` once more
        for part in range(n):
            box = following(los[part], his[part], at[part, 0], by) if indexed else at[part, 0]
            if box == boxes:
                return OPEN
            wanted = m + 2 * d
            if wanted > MOST_PARTS:
                return SPENT
            if wanted > len(next_at):
                next_los, next_his = with_room(next_los, wanted), with_room(next_his, wanted)
                next_at = with_room(next_at, wanted)
            first = m
            if indexed or overlap(los[part], his[part], lower[box], upper[box]):
                m = split(los[part], his[part], lower[box], upper[box], next_los, next_his, m)
            else:
                next_los[m], next_his[m] = los[part], his[part]
                m += 1
            for piece in range(first, m):
                next_at[piece, 0] = box + 1
        los, his, at, n = next_los, next_his, next_at, m
    return COVERED


@njit(cache=True, nogil=True)
def depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """DFS, Algorithm 11, with a stack: one part is split by the next box that overlaps it, then the parts
    that are left of it.
    """
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
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
        box = following(part_lo, part_hi, at[n, 0], by)
        if box == boxes:
            return OPEN
        los, his, at = with_room(los, n + 2 * d), with_room(his, n + 2 * d), with_room(at, n + 2 * d)
        m = split(part_lo, part_hi, lower[box], upper[box], los, his, n)
        at[n:m, 0] = box + 1
        n = m
    return COVERED


@njit(cache=True, nogil=True)
def mixed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """MIX, Algorithm 12: all parts that one split has made are split by one box, then the parts of each of
    them.

    A group is a run of parts on the stack, with the number of the box with which to continue.
    """
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
    los, his = np.empty((4 * d + 1, d), np.int32), np.empty((4 * d + 1, d), np.int32)
    begins, at = np.zeros((4, 1), np.int32), np.zeros((4, 1), np.int32)
    los[0], his[0] = lo, hi
    n, groups, spent = 1, 1, 0
    while groups:
        groups -= 1
        begin, after = int(np.int64(begins[groups, 0])), at[groups, 0]
        members = n - begin
        spent += members
        if spent > budget:
            return SPENT
        old_los, old_his = los[begin:n].copy(), his[begin:n].copy()
        n = begin
        begins, at = with_room(begins, groups + members + 1), with_room(at, groups + members + 1)
        for part in range(members):
            box = following(old_los[part], old_his[part], after, by) if indexed else after
            if box == boxes:
                return OPEN
            los, his = with_room(los, n + 2 * d), with_room(his, n + 2 * d)
            first = n
            if indexed or overlap(old_los[part], old_his[part], lower[box], upper[box]):
                n = split(old_los[part], old_his[part], lower[box], upper[box], los, his, n)
            else:
                los[n], his[n] = old_los[part], old_his[part]
                n += 1
            if n > first:
                begins[groups, 0], at[groups, 0] = first, box + 1
                groups += 1
    return COVERED

"""Is a box covered by a union of boxes? The paper's three strategies of splitting (kuntschke-2006, section
3.5, Algorithms 10 to 12), compiled, each with an index over the boxes or without.

A part is compared with box after box, and split by those that meet it; an index leaves out the others. What
is left of a part behind the last box ends the search.
"""

from __future__ import annotations

import numba
import numpy as np

from tamis.predicates.cover.index import following, index
from tamis.predicates.cover.split import COVERED, MOST_PARTS, OPEN, SPENT, Int32s, meets, room, split


@numba.njit(cache=True, nogil=True)
def breadth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """BFS, Algorithm 10: all parts by one box each, then what is left of all by the next ones."""
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
                next_los, next_his = room(next_los, wanted), room(next_his, wanted)
                next_at = room(next_at, wanted)
            first = m
            if indexed or meets(los[part], his[part], lower[box], upper[box]):
                m = split(los[part], his[part], lower[box], upper[box], next_los, next_his, m)
            else:
                next_los[m], next_his[m] = los[part], his[part]
                m += 1
            for piece in range(first, m):
                next_at[piece, 0] = box + 1
        los, his, at, n = next_los, next_his, next_at, m
    return COVERED


@numba.njit(cache=True, nogil=True)
def depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """DFS, Algorithm 11, with a stack: one part by the next box that meets it, then what is left of it."""
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
        los, his, at = room(los, n + 2 * d), room(his, n + 2 * d), room(at, n + 2 * d)
        m = split(part_lo, part_hi, lower[box], upper[box], los, his, n)
        at[n:m, 0] = box + 1
        n = m
    return COVERED


@numba.njit(cache=True, nogil=True)
def mixed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """MIX, Algorithm 12: all parts of one split by one box each, then the parts of each.

    A group is parts that stand together on the stack, under the number of the box from which on they are
    compared.
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
        begins, at = room(begins, groups + members + 1), room(at, groups + members + 1)
        for part in range(members):
            box = following(old_los[part], old_his[part], after, by) if indexed else after
            if box == boxes:
                return OPEN
            los, his = room(los, n + 2 * d), room(his, n + 2 * d)
            first = n
            if indexed or meets(old_los[part], old_his[part], lower[box], upper[box]):
                n = split(old_los[part], old_his[part], lower[box], upper[box], los, his, n)
            else:
                los[n], his[n] = old_los[part], old_his[part]
                n += 1
            if n > first:
                begins[groups, 0], at[groups, 0] = first, box + 1
                groups += 1
    return COVERED

"""Is a box covered by a union of boxes? The split algorithm with the paper's three strategies
(kuntschke-2006, section 3.5, Algorithms 10 to 12) and one of ours, compiled.

All take codes of shape (boxes, d) and one box of shape (d,), and return whether it is covered, or -1 where
more than `budget` parts were looked at or too many held. The empty parts of a split are never kept (erratum
of the paper).
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]

COVERED, OPEN, SPENT = 1, 0, -1
# Parts that a strategy may hold at a time, some hundred megabytes.
MOST_PARTS = 4_000_000


@numba.njit(cache=True, nogil=True)
def meets(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """Whether two boxes meet."""
    for d in range(len(lo)):  # noqa: SIM110 - a generator isn't compiled
        if lo[d] >= upper[d] or hi[d] <= lower[d]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def split(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, los: Int32s, his: Int32s, n: int) -> int:
    """Write the parts of a box outside of another that it meets behind row `n`; returns the new number of
    rows. `lo` and `hi` are narrowed to what lies inside.
    """
    for d in range(len(lo)):
        if lo[d] < lower[d]:
            los[n], his[n] = lo, hi
            his[n, d] = lower[d]
            n += 1
            lo[d] = lower[d]
        if upper[d] < hi[d]:
            los[n], his[n] = lo, hi
            los[n, d] = upper[d]
            n += 1
            hi[d] = upper[d]
    return n


@numba.njit(cache=True, nogil=True)
def room(rows: Int32s, wanted: int) -> Int32s:
    """The same rows with room for as many as are wanted."""
    if wanted <= len(rows):
        return rows
    more = np.empty((2 * wanted, rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@numba.njit(cache=True, nogil=True)
def breadth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """BFS, Algorithm 10: all parts against the first box, what is left against the second, and so on."""
    d = len(lo)
    los, his = np.empty((1, d), np.int32), np.empty((1, d), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    for box in range(len(lower)):
        spent += n
        if spent > budget:
            return SPENT
        next_los, next_his = np.empty((n + 2 * d, d), np.int32), np.empty((n + 2 * d, d), np.int32)
        m = 0
        for part in range(n):
            if m > MOST_PARTS:
                return SPENT
            next_los, next_his = room(next_los, m + 2 * d + 1), room(next_his, m + 2 * d + 1)
            if meets(los[part], his[part], lower[box], upper[box]):
                m = split(los[part], his[part], lower[box], upper[box], next_los, next_his, m)
            else:
                next_los[m], next_his[m] = los[part], his[part]
                m += 1
        los, his, n = next_los, next_his, m
        if n == 0:
            return COVERED
    return OPEN


@numba.njit(cache=True, nogil=True)
def depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """DFS, Algorithm 11, with a stack: one part against box after box, then the next; what is left of one
    behind the last box ends the search.
    """
    d, boxes = len(lo), len(lower)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    at = np.empty((2 * d + 1, 1), np.int32)
    los[0], his[0], at[0, 0] = lo, hi, 0
    n, spent = 1, 0
    while n:
        spent += 1
        if spent > budget:
            return SPENT
        n -= 1
        part_lo, part_hi, box = los[n].copy(), his[n].copy(), at[n, 0]
        while box < boxes and not meets(part_lo, part_hi, lower[box], upper[box]):
            box += 1
        if box == boxes:
            return OPEN
        los, his, at = room(los, n + 2 * d), room(his, n + 2 * d), room(at, n + 2 * d)
        m = split(part_lo, part_hi, lower[box], upper[box], los, his, n)
        at[n:m, 0] = box + 1
        n = m
    return COVERED


@numba.njit(cache=True, nogil=True)
def mixed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """MIX, Algorithm 12: all parts of one split against the next box at once, then the parts of each.

    A group is parts that stand together on the stack, under one number of the box that comes next.
    """
    d, boxes = len(lo), len(lower)
    los, his = np.empty((4 * d + 1, d), np.int32), np.empty((4 * d + 1, d), np.int32)
    begins, at = np.zeros((4, 1), np.int32), np.zeros((4, 1), np.int32)
    los[0], his[0] = lo, hi
    n, groups, spent = 1, 1, 0
    while groups:
        groups -= 1
        begin, box = begins[groups, 0], at[groups, 0]
        if box == boxes:
            return OPEN
        members = n - begin
        spent += members
        if spent > budget:
            return SPENT
        old_los, old_his = los[begin:n].copy(), his[begin:n].copy()
        n = begin
        begins, at = room(begins, groups + members + 1), room(at, groups + members + 1)
        for part in range(members):
            los, his = room(los, n + 2 * d + 1), room(his, n + 2 * d + 1)
            first = n
            if meets(old_los[part], old_his[part], lower[box], upper[box]):
                n = split(old_los[part], old_his[part], lower[box], upper[box], los, his, n)
            else:
                los[n], his[n] = old_los[part], old_his[part]
                n += 1
            if n > first:
                begins[groups, 0], at[groups, 0] = first, box + 1
                groups += 1
    return COVERED


@numba.njit(cache=True, nogil=True)
def narrowing(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """Ours: depth first, where each part only knows the boxes that meet it, and is split by the one that
    takes the most of it. A part that one box holds is done with; one that none meets ends the search.

    The boxes of a part are a run of `known`, filtered from those of the part that it was split off: what the
    paper asks of an index whose entries can be switched off (section 3.6).
    """
    d, boxes = len(lo), len(lower)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    runs = np.empty((2 * d + 1, 2), np.int64)
    known = np.empty(max(4 * boxes, 16), np.int32)
    m = 0
    for box in range(boxes):
        if meets(lo, hi, lower[box], upper[box]):
            known[m] = box
            m += 1
    los[0], his[0], runs[0, 0], runs[0, 1] = lo, hi, 0, m
    n, spent = 1, 0
    while n:
        spent += 1
        if spent > budget:
            return SPENT
        n -= 1
        part_lo, part_hi = los[n].copy(), his[n].copy()
        first, behind = runs[n, 0], runs[n, 1]
        if first == behind:
            return OPEN
        best, most = -1, -1.0
        for i in range(first, behind):
            share = 1.0
            for k in range(d):
                inside = min(part_hi[k], upper[known[i], k]) - max(part_lo[k], lower[known[i], k])
                share *= inside / (part_hi[k] - part_lo[k])
            if share > most:
                best, most = known[i], share
        if most >= 1.0:
            continue
        los, his = room(los, n + 2 * d), room(his, n + 2 * d)
        if n + 2 * d > len(runs):
            more = np.empty((2 * (n + 2 * d), 2), np.int64)
            more[: len(runs)] = runs
            runs = more
        parts = split(part_lo, part_hi, lower[best], upper[best], los, his, n)
        end = behind
        for part in range(n, parts):
            if end + behind - first > len(known):
                longer = np.empty(2 * (end + behind - first), np.int32)
                longer[:end] = known[:end]
                known = longer
            start = end
            for i in range(first, behind):
                box = known[i]
                if box != best and meets(los[part], his[part], lower[box], upper[box]):
                    known[end] = box
                    end += 1
            if end == start:
                return OPEN
            runs[part, 0], runs[part, 1] = start, end
        n = parts
    return COVERED

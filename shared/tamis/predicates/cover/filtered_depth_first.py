"""The strategy of splitting that Tamis uses: depth first, with the boxes filtered for each part."""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.predicates.cover.split import (
    COVERED,
    OPEN,
    SPENT,
    Int32s,
    overlap,
    split,
    with_room,
)


@njit(cache=True, nogil=True)
def filtered_depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """Split depth first. Each part has a list of the boxes that overlap it, and is split by the box that
    covers most of it.

    A part inside one box is covered. A part that no box overlaps ends the search. The boxes of a part are a
    run of `known`, which is filtered from the run of the part before the split. So no index is needed whose
    entries can be switched off, as in section 3.6 of the paper.
    """
    d, boxes = len(lo), len(lower)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    runs = np.empty((2 * d + 1, 2), np.int64)
    known = np.empty(max(4 * boxes, 16), np.int32)
    m = 0
    for box in range(boxes):
        if overlap(lo, hi, lower[box], upper[box]):
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
        los, his = with_room(los, n + 2 * d), with_room(his, n + 2 * d)
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
                if box != best and overlap(los[part], his[part], lower[box], upper[box]):
                    known[end] = box
                    end += 1
            if end == start:
                return OPEN
            runs[part, 0], runs[part, 1] = start, end
        n = parts
    return COVERED

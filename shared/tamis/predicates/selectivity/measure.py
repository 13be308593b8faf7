"""The exact measure of a union of boxes, where attributes are independent and each cell has a weight.

Two algorithms that agree: by slabs (fewest steps where boxes are many and dimensions few) and by parts (where
dimensions are many and boxes overlap little). Boxes are codes, half-open, as in `cover.codes`.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tamis.predicates.cover.codes import Int32s
from tamis.predicates.cover.split import meets, room, split

Floats = npt.NDArray[np.float64]

# In three dimensions slabs take about n³ / 8 steps, parts n² and more: beyond these, parts are fewer.
SLABS_UP_TO = {1: 10**9, 2: 10**9, 3: 200}


def measure(lower: Int32s, upper: Int32s, cumulative: Floats) -> float:
    """The weight of the union of boxes of shape (boxes, d). `cumulative`: shape (d, cuts), the weight of an
    attribute's values below each cut.
    """
    boxes, dimensions = lower.shape
    if boxes == 0:
        return 0.0
    if boxes <= SLABS_UP_TO.get(dimensions, 0):
        return float(by_slabs(lower, upper, cumulative))
    sizes = np.prod(
        [cumulative[d][upper[:, d]] - cumulative[d][lower[:, d]] for d in range(dimensions)], axis=0
    )
    order = np.argsort(-sizes, kind="stable")  # what comes late is likely to lie in what came before
    return float(by_parts(lower[order], upper[order], cumulative))


@numba.njit(cache=True, nogil=True)
def by_slabs(lower: Int32s, upper: Int32s, cumulative: Floats) -> float:
    """Cut the first dimension at all ends; in each slab measure the boxes that cross it in the others.

    A stack of slabs instead of recursion: for each dimension the boxes that cross all slabs above, the cuts
    among their ends, and how far it has come.
    """
    boxes, dimensions = lower.shape
    crossing = np.empty((dimensions + 1, boxes), np.int64)
    counts = np.zeros(dimensions + 1, np.int64)
    cuts = np.empty((dimensions, 2 * boxes), np.int32)
    cut_counts, at = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64)
    weights = np.ones(dimensions + 1)
    crossing[0], counts[0] = np.arange(boxes), boxes
    # Of a constant 0 numba would compile `_cut` once more.
    total, d = 0.0, np.int64(0)
    _cut(lower, upper, crossing[0], boxes, d, cuts[0], cut_counts)
    while d >= 0:
        if at[d] + 1 >= cut_counts[d]:
            d -= 1
            continue
        here, behind = cuts[d, at[d]], cuts[d, at[d] + 1]
        at[d] += 1
        weight = weights[d] * (cumulative[d, behind] - cumulative[d, here])
        if weight <= 0.0:
            continue
        found = np.int64(0)
        for i in range(counts[d]):
            box = crossing[d, i]
            if lower[box, d] <= here and upper[box, d] >= behind:
                crossing[d + 1, found] = box
                found += 1
        if found == 0:
            continue
        if d == dimensions - 1:
            total += weight
            continue
        d += 1
        counts[d], weights[d], at[d] = found, weight, 0
        _cut(lower, upper, crossing[d], found, d, cuts[d], cut_counts)
    return total


@numba.njit(cache=True, nogil=True)
def _cut(
    lower: Int32s,
    upper: Int32s,
    boxes: npt.NDArray[np.int64],
    count: int,
    d: int,
    cuts: Int32s,
    counts: npt.NDArray[np.int64],
) -> None:
    """The distinct ends of some boxes in one dimension, ascending."""
    ends = np.empty(2 * count, np.int32)
    for i in range(count):
        ends[2 * i], ends[2 * i + 1] = lower[boxes[i], d], upper[boxes[i], d]
    ends.sort()
    n = 0
    for end in ends:
        if n == 0 or cuts[n - 1] != end:
            cuts[n] = end
            n += 1
    counts[d] = n


@numba.njit(cache=True, nogil=True)
def by_parts(lower: Int32s, upper: Int32s, cumulative: Floats) -> float:
    """Add what each box has outside of those before it, split into disjoint parts."""
    boxes, dimensions = lower.shape
    total = 0.0
    los, his = (
        np.empty((4 * dimensions, dimensions), np.int32),
        np.empty((4 * dimensions, dimensions), np.int32),
    )
    at = np.empty((4 * dimensions, 1), np.int32)
    for box in range(boxes):
        los[0], his[0], at[0, 0] = lower[box], upper[box], 0
        n = 1
        while n:
            n -= 1
            lo, hi, other = los[n].copy(), his[n].copy(), at[n, 0]
            while other < box and not meets(lo, hi, lower[other], upper[other]):
                other += 1
            if other == box:
                weight = 1.0
                for d in range(dimensions):
                    weight *= cumulative[d, hi[d]] - cumulative[d, lo[d]]
                total += weight
                continue
            wanted = n + 2 * dimensions
            los, his, at = room(los, wanted), room(his, wanted), room(at, wanted)
            m = split(lo, hi, lower[other], upper[other], los, his, n)
            at[n:m, 0] = other + 1
            n = m
    return total

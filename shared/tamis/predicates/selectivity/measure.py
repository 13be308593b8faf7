"""The measure of a union of boxes, where attributes are independent and each cell has a weight.

One dimension is swept. In several each box is split by those before it, the largest first: what overlaps much
is soon covered, what overlaps little seldom split. Boxes are codes, half-open, as in `cover.codes`.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tamis.predicates.cover.codes import Int32s
from tamis.predicates.cover.split import meets, room, split

Floats = npt.NDArray[np.float64]

# Looks at a box, some seconds: the parts of hundreds of boxes in many dimensions are countless.
BUDGET = 200_000_000
# Boxes with which others are compared in any case.
LARGEST = 20


def measure(lower: Int32s, upper: Int32s, cumulative: Floats, budget: int = BUDGET) -> float:
    """The weight of the union of boxes of shape (boxes, d), exact; where that takes more than `budget` looks
    at a box, those that are left, the smallest, count as if they overlapped only the `LARGEST`, so that it
    is too high. `cumulative`: of shape (d, cuts), the weight of an attribute's values below each cut.
    """
    boxes, dimensions = lower.shape
    if boxes == 0:
        return 0.0
    if dimensions == 1:
        return by_sweep(lower[:, 0], upper[:, 0], cumulative[0])
    sizes = np.prod(
        [cumulative[d][upper[:, d]] - cumulative[d][lower[:, d]] for d in range(dimensions)], axis=0
    )
    order = np.argsort(-sizes, kind="stable")  # what comes late is likely to lie in what came before
    return float(by_parts(lower[order], upper[order], cumulative, budget))


def by_sweep(lower: Int32s, upper: Int32s, cumulative: Floats) -> float:
    """What each range has behind the furthest end of those that begin before it; arrays of shape (n,)."""
    order = np.argsort(lower, kind="stable")
    reached = np.maximum.accumulate(upper[order])
    begin = lower[order]
    begin[1:] = np.maximum(begin[1:], reached[:-1])
    return float(np.maximum(cumulative[reached] - cumulative[begin], 0.0).sum())


@numba.njit(cache=True, nogil=True)
def by_parts(lower: Int32s, upper: Int32s, cumulative: Floats, budget: int) -> float:
    """Add what each box has outside of those before it, split into disjoint parts; see `measure`."""
    boxes, dimensions = lower.shape
    total, looked = 0.0, 0
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
            looked += 1
            before = box if looked <= budget else min(box, LARGEST)
            while other < before and not meets(lo, hi, lower[other], upper[other]):
                other += 1
                looked += 1
            if other >= before:
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

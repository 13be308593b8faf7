"""The measure of a union of boxes (Klee's measure problem), with a weight for each cell.

In one dimension, the ranges are added from left to right (a sweep). In several dimensions, the boxes are
added one after the other, the largest first: of each box, only the part outside the boxes before it is
counted, and is found by splitting the box. A box with much overlap is soon covered, and a box with little
overlap is split only a few times. Boxes are compressed and half-open, as in `cover.coordinate_compression`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.predicates.cover.coordinate_compression import Int32s
from tamis.predicates.cover.split import overlap, split, with_room

Floats = npt.NDArray[np.float64]

# Tests of a box, some seconds: hundreds of boxes in many dimensions have too many parts.
BUDGET = 200_000_000
# The largest boxes, with which the others are always compared.
LARGEST = 20


def measure(lower: Int32s, upper: Int32s, cumulative: Floats, budget: int = BUDGET) -> float:
    """The weight of the union of boxes of shape (boxes, d).

    It is exact if it takes at most `budget` tests of a box. Past that, it overestimates: the remaining boxes,
    the smallest, only count their overlap with the `LARGEST`. `cumulative`, of shape (d, cuts): the weight of
    an attribute's values below each cut.
    """
    boxes, dimensions = lower.shape
    if boxes == 0:
        return 0.0
    if dimensions == 1:
        return by_sweep(lower[:, 0], upper[:, 0], cumulative[0])
    sizes = np.prod(
        [cumulative[d][upper[:, d]] - cumulative[d][lower[:, d]] for d in range(dimensions)], axis=0
    )
    order = np.argsort(-sizes, kind="stable")  # a small box at the end is likely to be covered
    return float(by_parts(lower[order], upper[order], cumulative, budget))


def by_sweep(lower: Int32s, upper: Int32s, cumulative: Floats) -> float:
    """The sum of what each range adds past the furthest end of the ranges that begin before it; arrays of
    shape (n,).
    """
    order = np.argsort(lower, kind="stable")
    reached = np.maximum.accumulate(upper[order])
    begin = lower[order]
    begin[1:] = np.maximum(begin[1:], reached[:-1])
    return float(np.maximum(cumulative[reached] - cumulative[begin], 0.0).sum())


@njit(cache=True, nogil=True)
def by_parts(lower: Int32s, upper: Int32s, cumulative: Floats, budget: int) -> float:
    """The sum of what each box adds outside of the boxes before it, split into disjoint parts; see
    `measure`.
    """
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
            while other < before and not overlap(lo, hi, lower[other], upper[other]):
                other += 1
                looked += 1
            if other >= before:
                weight = 1.0
                for d in range(dimensions):
                    weight *= cumulative[d, hi[d]] - cumulative[d, lo[d]]
                total += weight
                continue
            wanted = n + 2 * dimensions
            los, his, at = with_room(los, wanted), with_room(his, wanted), with_room(at, wanted)
            m = split(lo, hi, lower[other], upper[other], los, his, n)
            at[n:m, 0] = other + 1
            n = m
    return total

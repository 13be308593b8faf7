"""An index over boxes, for strategies of splitting (kuntschke-2006, section 3.6): which box is the next that
meets a part? Compiled.

The index is a bitmap: for each dimension and cut, the boxes that begin before it, and those that end behind
it. Those that meet a part are found by two look-ups a dimension and ANDing the sets. A part masks the boxes
that it has been split by, which are all up to a number, and nothing is reorganised: what the paper asks of
an index so that DFS and MIX gain by it, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tamis.predicates.bits import first_bit
from tamis.predicates.cover.split import Int32s, meets

Words = npt.NDArray[np.uint64]


class Index(NamedTuple):
    """Boxes, and of shape (d, cuts, words) those that begin before a cut and those that end behind it;
    without cuts where box after box is tried.
    """

    lower: Int32s
    upper: Int32s
    begun: Words
    open: Words


@numba.njit(cache=True, nogil=True)
def index(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, bitmaps: bool) -> Index:
    """The index by which parts of the box `lo` to `hi` find others."""
    boxes, dimensions = lower.shape
    cuts = 0
    if bitmaps:
        for d in range(dimensions):
            cuts = max(cuts, hi[d] + 1)
            for box in range(boxes):
                cuts = max(cuts, upper[box, d] + 1)
    words = (boxes + 63) // 64
    begun = np.zeros((dimensions, cuts, words), np.uint64)
    open_ = np.zeros((dimensions, cuts, words), np.uint64)
    if cuts == 0:
        return Index(lower, upper, begun, open_)
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
    return Index(lower, upper, begun, open_)


@numba.njit(cache=True, nogil=True)
def following(lo: Int32s, hi: Int32s, box: int, by: Index) -> int:
    """The first box from `box` on that meets a part; the number of boxes where there is none."""
    if by.begun.shape[1] == 0:
        for other in range(box, len(by.lower)):
            if meets(lo, hi, by.lower[other], by.upper[other]):
                return other
        return len(by.lower)
    for word in range(box // 64, by.begun.shape[2]):
        found = ~np.uint64(0)
        if word == box // 64:
            found <<= np.uint64(box % 64)
        for d in range(len(lo)):
            found &= by.begun[d, hi[d], word] & by.open[d, lo[d], word]
            if found == 0:
                break
        if found != 0:
            return word * 64 + first_bit(found)
    return len(by.lower)

"""Bitmap index for strategies of splitting: the next box that overlaps a part (kuntschke-2006, section 3.6).

For each dimension and each cut, the index has two sets of boxes as bits: the boxes that begin before the cut,
and the boxes that end after it. Two look-ups for each dimension, combined with AND, give the boxes that
overlap a part.

A part must not be split again by a box by which it has been split already. These are all boxes up to some
number, so they are skipped without a change of the index. The paper asks for such an index, so that DFS and
MIX can use an index, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.predicates.bits import first_bit
from tamis.predicates.cover.split import Int32s, overlap

Words = npt.NDArray[np.uint64]


class Index(NamedTuple):
    """Boxes, and the sets of boxes that begin before a cut, and that end after it, of shape (d, cuts, words).

    There are no cuts if one box after the other is tried.
    """

    lower: Int32s
    upper: Int32s
    begun: Words
    open: Words


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def following(lo: Int32s, hi: Int32s, box: int, by: Index) -> int:
    """The first box from `box` on that overlaps a part; the number of boxes if there is none."""
    if by.begun.shape[1] == 0:
        for other in range(box, len(by.lower)):
            if overlap(lo, hi, by.lower[other], by.upper[other]):
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

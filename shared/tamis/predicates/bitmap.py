"""Bitmap index over boxes, to find the boxes that contain a tuple.

For each dimension, the index has the sorted ends of all ranges. For each interval between two neighbouring
ends, it has the set of boxes that cover this interval, as bits. To find the boxes of a tuple, its value is
looked up in each dimension, and the sets are combined with AND. Overlap between boxes does not make this
index slower, unlike an R-tree (kuntschke-2006, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

WORD = 64


@njit(cache=True, nogil=True)
def first_bit(word: np.uint64) -> int:
    """The number of the lowest bit that is set, in a word that isn't 0."""
    at = 0
    left = word
    for width in (32, 16, 8, 4, 2, 1):
        if left & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)) == 0:
            left >>= np.uint64(width)
            at += width
    return at


Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

# With so many, a bucket seldom has more than one end.
BUCKETS_OF_END = 16
# In bits: a dimension has at most 32,768 buckets.
MOST_BUCKETS = 15


class Bitmap:
    """Boxes as bits. `lower`, `upper`: int64 keys of shape (boxes, d), half-open. Neighbouring boxes should
    be adjacent, so that most words of most sets are 0.
    """

    def __init__(self, lower: Int64s, upper: Int64s) -> None:
        boxes, dimensions = lower.shape
        self.words = (boxes + WORD - 1) // WORD
        ends = [np.unique(np.concatenate([lower[:, d], upper[:, d]])) for d in range(dimensions)]
        self._ends = np.concatenate(ends) if ends else np.empty(0, np.int64)
        self._begins = np.cumsum([0, *map(len, ends)], dtype=np.int64)
        # Row 0 of a dimension is below all ends, where no box is; row i + 1 begins at end i.
        self._sets = np.zeros((len(self._ends) + dimensions, self.words), np.uint64)
        for d in range(dimensions):
            first = np.searchsorted(ends[d], lower[:, d]) + 1
            behind = np.searchsorted(ends[d], upper[:, d]) + 1
            _fill(self._sets, int(self._begins[d]) + d, first, behind)
        # Of each row, the words that aren't 0, as bits.
        self._used = np.zeros((len(self._sets), (self.words + WORD - 1) // WORD), np.uint64)
        _note_used(self._sets, self._used)
        self._buckets = Buckets.of(ends)

    def any(self, keys: Int64s, out: Bools) -> None:
        """Set `out` where a box holds the tuple. `keys`: (d, n)."""
        _any(keys, self._ends, self._begins, self._buckets, self._sets, self._used, out)

    def which(self, keys: Int64s) -> Words:
        """The boxes that hold each tuple, as bits: (n, words)."""
        out = np.empty((keys.shape[1], self.words), np.uint64)
        _which(keys, self._ends, self._begins, self._buckets, self._sets, out)
        return out


class Buckets(NamedTuple):
    """Look-up table for the place of a key among the ends of a dimension. The keys are divided into buckets
    of equal width. The outermost ends are left out, because they may be far away.

    There are buckets from `first` to `behind`. `shift`: the number of low bits of `key - first` within a
    bucket. `starts`, of shape (d, buckets + 1): the number of ends below each bucket.
    """

    first: Int64s
    behind: Int64s
    shift: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int32]

    @staticmethod
    def of(ends: Sequence[Int64s]) -> Buckets:
        """For the ends of each dimension, ascending."""
        dimensions = len(ends)
        first, behind = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64)
        shift = np.zeros(dimensions, np.uint64)
        size = 1 << min((BUCKETS_OF_END * max(map(len, ends), default=1)).bit_length(), MOST_BUCKETS)
        starts = np.zeros((dimensions, size + 1), np.int32)
        for d, mine in enumerate(ends):
            outermost = len(mine) // 16 + 1
            if len(mine) <= 2 * outermost:
                starts[d] = 0
                behind[d] = first[d] = mine[0] if len(mine) else 0
                continue
            low, high = int(mine[outermost]), int(mine[-1 - outermost])
            bits = max((high - low).bit_length() - (size.bit_length() - 1), 0)
            first[d], behind[d], shift[d] = low, high, bits
            edges = [min(low + (bucket << bits), high) for bucket in range(size + 1)]
            starts[d] = np.searchsorted(mine, np.array(edges, np.int64))
        return Buckets(first, behind, shift, starts)


@njit(cache=True, nogil=True)
def _fill(sets: Words, top: int, first: Int64s, behind: Int64s) -> None:
    for box in range(len(first)):
        word, bit = box // 64, np.uint64(1) << np.uint64(box % 64)
        for row in range(first[box], behind[box]):
            sets[top + row, word] |= bit


@njit(cache=True, nogil=True)
def _note_used(sets: Words, used: Words) -> None:
    for row in range(sets.shape[0]):
        for word in range(sets.shape[1]):
            if sets[row, word] != 0:
                used[row, word // 64] |= np.uint64(1) << np.uint64(word % 64)


@njit(cache=True, nogil=True, inline="always")
def _row(
    key: int,
    d: int,
    ends: Int64s,
    begins: Int64s,
    buckets: Buckets,
) -> int:
    """The number of ends of a dimension that are at most `key`."""
    begin, starts = begins[d], buckets.starts
    if key < buckets.first[d]:
        at, most = np.int64(0), np.int64(starts[d, 0])
    elif key >= buckets.behind[d]:
        at, most = np.int64(starts[d, -1]), begins[d + 1] - begin
    else:
        bucket = np.int64((np.uint64(key) - np.uint64(buckets.first[d])) >> buckets.shift[d])
        at, most = np.int64(starts[d, bucket]), np.int64(starts[d, bucket + 1])
    while most - at > 8:
        middle = (at + most) // 2
        if ends[begin + middle] <= key:
            at = middle + 1
        else:
            most = middle
    while at < most and ends[begin + at] <= key:
        at += 1
    return int(at)


@njit(cache=True, nogil=True)
def _any(
    keys: Int64s,
    ends: Int64s,
    begins: Int64s,
    buckets: Buckets,
    sets: Words,
    used: Words,
    out: Bools,
) -> None:
    dimensions = keys.shape[0]
    words, groups = sets.shape[1], used.shape[1]
    rows = np.empty(dimensions, np.int64)
    for i in range(keys.shape[1]):
        hit = True
        for d in range(dimensions):
            # Outside of all ranges of one dimension. Most tuples are, if few satisfy the predicate.
            key = keys[d, i]
            if key < ends[begins[d]] or key >= ends[begins[d + 1] - 1]:
                hit = False
                break
        if not hit:
            out[i] = False
            continue
        for d in range(dimensions):
            rows[d] = begins[d] + d + _row(keys[d, i], d, ends, begins, buckets)
        hit = False
        if words <= 4:
            # Without branches: the processor would mispredict every other one.
            some = np.uint64(0)
            for word in range(words):
                found = ~np.uint64(0)
                for d in range(dimensions):
                    found &= sets[rows[d], word]
                some |= found
            hit = some != 0
        else:
            for group in range(groups):
                left = ~np.uint64(0)
                for d in range(dimensions):
                    left &= used[rows[d], group]
                while left != 0 and not hit:
                    bit = first_bit(left)
                    left &= left - np.uint64(1)
                    word = group * 64 + bit
                    if word >= words:
                        break
                    found = ~np.uint64(0)
                    for d in range(dimensions):
                        found &= sets[rows[d], word]
                    hit = found != 0
                if hit:
                    break
        out[i] = hit


@njit(cache=True, nogil=True)
def _which(
    keys: Int64s,
    ends: Int64s,
    begins: Int64s,
    buckets: Buckets,
    sets: Words,
    out: Words,
) -> None:
    dimensions = keys.shape[0]
    rows = np.empty(dimensions, np.int64)
    for i in range(keys.shape[1]):
        for d in range(dimensions):
            rows[d] = begins[d] + d + _row(keys[d, i], d, ends, begins, buckets)
        for word in range(sets.shape[1]):
            found = ~np.uint64(0)
            for d in range(dimensions):
                found &= sets[rows[d], word]
            out[i, word] = found


@njit(cache=True, nogil=True)
def mark_owners(sets: Words, owners: Int64s, out: Bools) -> None:
    """Set `out`, of shape (subscribers, n), where one of a subscriber's boxes is in a tuple's set."""
    for i in range(sets.shape[0]):
        for word in range(sets.shape[1]):
            left = sets[i, word]
            while left != 0:
                box = word * 64 + first_bit(left)
                left &= left - np.uint64(1)
                if box < len(owners):  # the last word may have bits of no box
                    out[owners[box], i] = True

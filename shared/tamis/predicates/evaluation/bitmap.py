"""The bitmap index: for each dimension, the sorted ends of all ranges, and for each interval between two
of them the set of boxes that cover it, as bits. A tuple is looked up in each dimension and the sets are met.

No overlap between boxes makes it slower, as it does an R-tree (kuntschke-2006, section 4.2). A box is taken
out or put back by one bit.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

WORD = 64


class Bitmap:
    """Boxes as bits. `lower`, `upper`: int64 keys of shape (boxes, d), half-open."""

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
        self.active = np.full(self.words, ~np.uint64(0))

    def activate(self, box: int, active: bool) -> None:
        """Take a box out, or put it back: nothing is reorganised."""
        bit = np.uint64(1) << np.uint64(box % WORD)
        if active:
            self.active[box // WORD] |= bit
        else:
            self.active[box // WORD] &= ~bit

    def any(self, keys: Int64s, out: Bools) -> None:
        """Set `out` where an active box holds the tuple. `keys`: (d, n)."""
        _any(keys, self._ends, self._begins, self._sets, self.active, out)

    def which(self, keys: Int64s) -> Words:
        """The active boxes that hold each tuple, as bits: (n, words)."""
        out = np.empty((keys.shape[1], self.words), np.uint64)
        _which(keys, self._ends, self._begins, self._sets, self.active, out)
        return out


@numba.njit(cache=True, nogil=True)
def _fill(sets: Words, top: int, first: Int64s, behind: Int64s) -> None:
    for box in range(len(first)):
        word, bit = box // 64, np.uint64(1) << np.uint64(box % 64)
        for row in range(first[box], behind[box]):
            sets[top + row, word] |= bit


@numba.njit(cache=True, nogil=True)
def _row(key: int, ends: Int64s, begin: int, behind: int) -> int:
    """How many of the ends in [begin, behind) are at most `key`. Without branches: halves of a list that is
    searched in no order are guessed wrong every other time.
    """
    at, size = begin, behind - begin
    while size > 1:
        half = size // 2
        at += half * (ends[at + half - 1] <= key)
        size -= half
    if size == 1 and ends[at] <= key:
        at += 1
    return at - begin


@numba.njit(cache=True, nogil=True)
def _any(keys: Int64s, ends: Int64s, begins: Int64s, sets: Words, active: Words, out: Bools) -> None:
    dimensions = keys.shape[0]
    rows = np.empty(dimensions, np.int64)
    for i in range(keys.shape[1]):
        for d in range(dimensions):
            rows[d] = begins[d] + d + _row(keys[d, i], ends, begins[d], begins[d + 1])
        hit = False
        for word in range(len(active)):
            found = active[word]
            for d in range(dimensions):
                found &= sets[rows[d], word]
            if found != 0:
                hit = True
                break
        out[i] = hit


@numba.njit(cache=True, nogil=True)
def _which(keys: Int64s, ends: Int64s, begins: Int64s, sets: Words, active: Words, out: Words) -> None:
    dimensions = keys.shape[0]
    rows = np.empty(dimensions, np.int64)
    for i in range(keys.shape[1]):
        for d in range(dimensions):
            rows[d] = begins[d] + d + _row(keys[d, i], ends, begins[d], begins[d + 1])
        for word in range(len(active)):
            found = active[word]
            for d in range(dimensions):
                found &= sets[rows[d], word]
            out[i, word] = found


@numba.njit(cache=True, nogil=True)
def mark_owners(sets: Words, owners: Int64s, out: Bools) -> None:
    """Set `out`, of shape (subscribers, n), where one of a subscriber's boxes is in a tuple's set."""
    for i in range(sets.shape[0]):
        for word in range(sets.shape[1]):
            left = sets[i, word]
            box = np.int64(word * 64)
            while left != 0:
                skip = np.uint64(0)
                if left & np.uint64(0xFFFF_FFFF) == 0:
                    skip += np.uint64(32)
                if (left >> skip) & np.uint64(0xFFFF) == 0:
                    skip += np.uint64(16)
                if (left >> skip) & np.uint64(0xFF) == 0:
                    skip += np.uint64(8)
                if (left >> skip) & np.uint64(0xF) == 0:
                    skip += np.uint64(4)
                if (left >> skip) & np.uint64(0x3) == 0:
                    skip += np.uint64(2)
                if (left >> skip) & np.uint64(0x1) == 0:
                    skip += np.uint64(1)
                box += np.int64(skip)
                if box < len(owners):  # the last word may have bits of no box
                    out[owners[box], i] = True
                left = (left >> skip) >> np.uint64(1)
                box += 1

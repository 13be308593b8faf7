"""Bitmaps that say which tuples of a topic pass which filters.

All filters of all definitions are evaluated in one pass. To evaluate thousands of filters one by one in every
batch takes longer than the joins themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.filter_dispatch import Dispatch
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Mask
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

Bitmap = NDArray[np.uint64]  # of one filter; of several filters with one row each

WORD = 64
# Tuples that are evaluated at a time, a multiple of WORD: their answers are bytes before they become bits.
BLOCK = 1 << 14


class FilterBitmaps:
    """The results of the filters of `dispatch` for the tuples of `tuples`: one bit for each tuple, one row of
    64-bit words for each filter.
    """

    def __init__(self, dispatch: Dispatch, tuples: StoredTuples) -> None:
        self.tuples, self.dispatch = tuples, dispatch
        self.failed: dict[int, FunctionError] = {}  # by row; the bits of those filters are all set
        size = len(tuples)
        # One array from the beginning: for a million tuples a second copy needs too much memory.
        self._words = np.empty((len(dispatch), -(-size // WORD)), np.uint64)
        self._has_new = np.zeros(len(dispatch), np.bool_)
        for first in range(0, size, BLOCK):
            end = min(first + BLOCK, size)
            part = {name: vector.take(slice(first, end)) for name, vector in tuples.columns.items()}
            held = dispatch.over(part, end - first)
            found = self._words[:, first // WORD : -(-end // WORD)]
            found[:] = _pack_rows(held.found)
            self._has_new |= np.any(found & pack_bits(tuples.new[first:end]), axis=1)
            self.failed |= held.failed

    def has_new(self, row: int) -> bool:
        """True if a new tuple passes the filter at `row`."""
        return bool(self._has_new[row])

    def mask(self, row: int) -> Mask:
        """A mask of the tuples that pass the filter at `row`. Raises FunctionError if a function that the
        filter calls has failed.
        """
        if row in self.failed:
            raise self.failed[row]
        return unpack_bits(self._words[row], len(self.tuples))

    def bitmaps(self, rows: NDArray[np.int64]) -> Bitmap:
        """A copy of the bitmaps of several filters, of shape (filters, words)."""
        found: Bitmap = self._words[rows]
        return found


def pack_bits(mask: Mask) -> Bitmap:
    """The bitmap of a mask."""
    words: Bitmap = _pack_rows(mask[None, :])[0]
    return words


def unpack_bits(words: Bitmap, size: int) -> Mask:
    """The mask of `size` tuples of a bitmap."""
    return np.unpackbits(words.view(np.uint8), count=size, bitorder="little").view(np.bool_)


def _pack_rows(masks: NDArray[np.bool_]) -> Bitmap:
    bits = np.packbits(masks, axis=1, bitorder="little")
    padding = -bits.shape[1] % (WORD // 8)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, padding)))).view(np.uint64)

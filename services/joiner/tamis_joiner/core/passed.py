"""Which of a topic's tuples pass which filters, of all definitions that read it, looked at in one pass: to
evaluate thousands of filters one by one, at every batch, takes longer than the joins themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.dispatch import Dispatch
from tamis.expressions.opaque import FunctionError
from tamis.expressions.vectors import Mask
from tamis_joiner.core.live import Live

Words = NDArray[np.uint64]

WORD = 64
BLOCK = 1 << 14  # a multiple of WORD: tuples whose answers are there as bytes before they become bits


class Passed:
    """Where the filters of `dispatch` hold among the tuples of `live`: 64 tuples a word, a row of words for
    each filter.
    """

    def __init__(self, dispatch: Dispatch, live: Live) -> None:
        self.live, self.dispatch = live, dispatch
        self.failed: dict[int, FunctionError] = {}  # by row; those filters hold everywhere
        size = len(live)
        # One array from the beginning: of a million tuples there is no room for two.
        self._words = np.empty((len(dispatch), -(-size // WORD)), np.uint64)
        self._new = np.zeros(len(dispatch), np.bool_)
        for first in range(0, size, BLOCK):
            behind = min(first + BLOCK, size)
            part = {name: vector.take(slice(first, behind)) for name, vector in live.columns.items()}
            held = dispatch.over(part, behind - first)
            found = self._words[:, first // WORD : -(-behind // WORD)]
            found[:] = _words(held.found)
            self._new |= np.any(found & packed(live.new[first:behind]), axis=1)
            self.failed |= held.failed

    def new(self, row: int) -> bool:
        """Whether a new tuple passes the filter at `row`."""
        return bool(self._new[row])

    def mask(self, row: int) -> Mask:
        """Which tuples pass the filter at `row`. Raises FunctionError where it can't be told."""
        if row in self.failed:
            raise self.failed[row]
        return unpacked(self._words[row], len(self.live))

    def words(self, rows: NDArray[np.int64]) -> Words:
        """The same of several filters, as words: of shape (filters, words). They are the caller's own."""
        found: Words = self._words[rows]
        return found


def packed(mask: Mask) -> Words:
    """A mask of shape (n,) as words."""
    words: Words = _words(mask[None, :])[0]
    return words


def unpacked(words: Words, size: int) -> Mask:
    """The mask of `size` tuples that the words stand for."""
    return np.unpackbits(words.view(np.uint8), count=size, bitorder="little").view(np.bool_)


def _words(masks: NDArray[np.bool_]) -> Words:
    bits = np.packbits(masks, axis=1, bitorder="little")
    behind = -bits.shape[1] % (WORD // 8)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, behind)))).view(np.uint64)

"""Bits of 64-bit words, for compiled kernels."""

from __future__ import annotations

import numpy as np

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

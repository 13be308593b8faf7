"""Bucket maxima: the greatest lead so far in each bucket of a cell. `synopsis` explains leads and buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.synopses.growable_arrays import grown
from tamis.bounded.synopses.kernels import rising
from tamis.bounded.synopses.row_numbering import RowNumbering

Ints = NDArray[np.int64]


class BucketMaxima:
    """The maxima of buckets, which are rows of `width` numbers."""

    def __init__(self, width: int) -> None:
        self._buckets = RowNumbering(width)
        self._best = np.empty(0, np.int64)

    def rising(self, rows: Ints, leads: Ints) -> NDArray[np.bool_]:
        """The rows, of shape (n, width), that are the first of their bucket, or have a greater lead than all
        rows of it before.

        >>> one = BucketMaxima(1)
        >>> one.rising(np.array([[7], [7], [8], [7]]), np.array([1, 1, 0, 2])).tolist()
        [True, False, True, True]
        """
        known = len(self._buckets)
        numbers = self._buckets.of(rows)
        self._best = grown(self._best, len(self._buckets))
        out = np.zeros(len(rows), np.bool_)
        rising(self._best, known, numbers, leads, out)
        return out

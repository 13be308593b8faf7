"""For each bucket of a cell the greatest lead so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.evaluate.growing import grown
from tamis.bounded.evaluate.kernels import rising
from tamis.bounded.evaluate.numbering import Numbering

Ints = NDArray[np.int64]


class Ledger:
    """Buckets as rows of `width` numbers."""

    def __init__(self, width: int) -> None:
        self._buckets = Numbering(width)
        self._best = np.empty(0, np.int64)

    def rising(self, rows: Ints, leads: Ints) -> NDArray[np.bool_]:
        """Which rows, of shape (n, width), are the first of their bucket, or lead all of it before.

        >>> one = Ledger(1)
        >>> one.rising(np.array([[7], [7], [8], [7]]), np.array([1, 1, 0, 2])).tolist()
        [True, False, True, True]
        """
        known = len(self._buckets)
        numbers = self._buckets.of(rows)
        self._best = grown(self._best, len(self._buckets))
        out = np.zeros(len(rows), np.bool_)
        rising(self._best, known, numbers, leads, out)
        return out

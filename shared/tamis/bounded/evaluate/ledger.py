"""For each bucket of a cell the greatest lead so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.evaluate.kernels import entered, rising

Ints = NDArray[np.int64]
_FEWEST = 16


class Ledger:
    """Buckets as rows of `width` numbers, in a hash table."""

    def __init__(self, width: int) -> None:
        self._keys = np.empty((_FEWEST, width), np.int64)
        self._best = np.empty(_FEWEST, np.int64)
        self._table = np.full(4 * _FEWEST, -1, np.int64)
        self._count = 0

    def rising(self, rows: Ints, leads: Ints) -> NDArray[np.bool_]:
        """Which rows, of shape (n, width), are the first of their bucket, or lead all of it before.

        >>> one = Ledger(1)
        >>> one.rising(np.array([[7], [7], [8], [7]]), np.array([1, 1, 0, 2])).tolist()
        [True, False, True, True]
        """
        out = np.zeros(len(rows), np.bool_)
        at = 0
        while at < len(rows):
            self._count, at = rising(self._table, self._keys, self._best, self._count, rows, leads, at, out)
            if at < len(rows):
                self._grow()
        return out

    def _grow(self) -> None:
        self._keys = np.concatenate([self._keys, np.empty_like(self._keys)])
        self._best = np.concatenate([self._best, np.empty_like(self._best)])
        self._table = np.full(2 * len(self._table), -1, np.int64)
        entered(self._table, self._keys, self._count)

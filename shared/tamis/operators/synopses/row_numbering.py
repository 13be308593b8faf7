"""Row numbering: a number for each different row of whole numbers, by a compiled hash table.

The numbers are places in arrays that grow, such as the greatest lead of each bucket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.operators.synopses.kernels import entered, numbered, rising

Ints = NDArray[np.int64]
_FEWEST = 16  # rows for which there is room at first


def grown(array: NDArray[Any], size: int, *, axis: int = 0, fill: object = 0) -> NDArray[Any]:
    """An array with room for `size` along an axis, filled where it is new.

    >>> grown(np.array([7, 8, 9]), 4).tolist()
    [7, 8, 9, 0, 0, 0]
    """
    have = array.shape[axis]
    if size <= have:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, 2 * have) - have
    return np.concatenate([array, np.full(shape, fill, array.dtype)], axis)


class RowNumbering:
    """Numbers rows of `width` numbers in the order in which they first come."""

    def __init__(self, width: int) -> None:
        self._keys = np.empty((_FEWEST, width), np.int64)
        self._table = np.full(4 * _FEWEST, -1, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, rows: Ints) -> Ints:
        """The numbers of rows of shape (n, width).

        >>> one = RowNumbering(1)
        >>> one.of(np.array([[7], [7], [8], [7]])).tolist(), len(one)
        ([0, 0, 1, 0], 2)
        """
        out = np.empty(len(rows), np.int64)
        at = 0
        while at < len(rows):
            self._count, at = numbered(self._table, self._keys, self._count, rows, at, out)
            if at < len(rows):
                self._keys = grown(self._keys, len(self._keys) + 1)
                self._table = np.full(2 * len(self._table), -1, np.int64)
                entered(self._table, self._keys, self._count)
        return out


def firsts(numbers: Ints, before: int) -> Ints:
    """The place of the first occurrence of each number that is at least `before`, if new numbers come in
    ascending order.

    >>> firsts(np.array([1, 2, 0, 2, 3]), 2).tolist()
    [1, 4]
    """
    highest = np.maximum.accumulate(np.concatenate([[before - 1], numbers]))
    return np.flatnonzero(numbers > highest[:-1])


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

"""Running sums and extremes of many items at once (buckets or groups), with the value after every row.

Integers may have any size: if 64 bits might not suffice, arrays hold Python integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.synopses.row_numbering import grown
from tamis.evaluation.standing.aggregates.kernels import (
    Integers,
    Ints,
    Mask,
    running_extremes,
    running_sums,
)
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import dtype_of

# Up to here sums of absolute values in DOUBLE are nearly exact, and the integers that they bound fit in 64
# bits.
_SAFE = 2.0**62


def times(numbers: Integers, factors: Integers) -> Integers:
    """Products, row by row.

    >>> times(np.array([2**40]), np.array([2**40])).tolist() == [2**80]
    True
    """
    if _exact(numbers) or _exact(factors) or _size(numbers, np.max) * _size(factors, np.max) > _SAFE:
        return np.asarray(numbers.astype(np.object_) * factors.astype(np.object_), np.object_)
    return np.asarray(numbers * factors)


def whole(numbers: list[int]) -> Integers:
    """Integers as an array."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, np.object_)


def fit(sums: Integers, new: Integers) -> bool:
    """True if the sums fit in 64 bits after any of the numbers are added."""
    return not (_exact(sums) or _exact(new)) and _size(sums, np.max) + _size(new, np.sum) <= _SAFE


def _exact(numbers: Integers) -> bool:
    return numbers.dtype == np.object_


def _size(numbers: Integers, most: Any) -> float:
    return float(most(np.abs(numbers.astype(np.float64)), initial=0.0))


class Sums:
    """An integer for each item, initially 0."""

    def __init__(self) -> None:
        self.values: Integers = np.zeros(0, np.int64)

    def grow(self, items: int) -> None:
        """Make room."""
        self.values = grown(self.values, items)

    def add(self, at: Ints, new: Integers) -> Integers:
        """Add numbers to items one by one; returns the sum of the item after each."""
        run: Callable[..., None] = running_sums
        if not fit(self.values[at], new):
            run = running_sums.py_func
            self.values, new = self.values.astype(np.object_), new.astype(np.object_)
        after = np.empty(len(at), self.values.dtype)
        run(self.values, at, new, after)
        return after


class Extremes:
    """The greatest or the least value of each item."""

    def __init__(self, type_: Type, *, greatest: bool) -> None:
        dtype = np.dtype(np.int64) if type_ is Type.BOOLEAN else dtype_of(type_)
        self._greatest = greatest
        self._run: Callable[..., None] = running_extremes.py_func if dtype == np.object_ else running_extremes
        self.values: NDArray[Any] = np.zeros(0, dtype)
        self.known: Mask = np.zeros(0, np.bool_)

    def grow(self, items: int) -> None:
        """Make room."""
        self.values, self.known = grown(self.values, items), grown(self.known, items)

    def add(self, at: Ints, new: NDArray[Any], some: Mask) -> NDArray[Any]:
        """Take values of items one by one, those in the mask `some`; returns the extreme of the item after
        each row, which is undefined before the item has a value.
        """
        after = np.zeros(len(at), self.values.dtype)
        self._run(self.values, self.known, at, new, some, self._greatest, after)
        return after

"""Running sums and extremes of many things at once, buckets or groups: what each is after every row.

A whole number may have any size: where 64 bits might not do, arrays hold Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.evaluate.growing import grown
from tamis.evaluation.standing.timeless.kernels import Ints, Mask, Whole, outdone, summed
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import dtype_of

# Sums of the sizes of numbers, in DOUBLE, are as good as exact up to here, and what they bound has 64 bits.
_SAFE = 2.0**62


def times(numbers: Whole, factors: Whole) -> Whole:
    """Products, row by row.

    >>> times(np.array([2**40]), np.array([2**40])).tolist() == [2**80]
    True
    """
    if _exact(numbers) or _exact(factors) or _size(numbers, np.max) * _size(factors, np.max) > _SAFE:
        return np.asarray(numbers.astype(np.object_) * factors.astype(np.object_), np.object_)
    return np.asarray(numbers * factors)


def whole(numbers: list[int]) -> Whole:
    """Numbers as an array."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, np.object_)


def fit(sums: Whole, new: Whole) -> bool:
    """Have sums 64 bits whichever numbers are added to them?"""
    return not (_exact(sums) or _exact(new)) and _size(sums, np.max) + _size(new, np.sum) <= _SAFE


def _exact(numbers: Whole) -> bool:
    return numbers.dtype == np.object_


def _size(numbers: Whole, most: Any) -> float:
    return float(most(np.abs(numbers.astype(np.float64)), initial=0.0))


class Sums:
    """A whole number for each thing, 0 at first."""

    def __init__(self) -> None:
        self.values: Whole = np.zeros(0, np.int64)

    def grow(self, things: int) -> None:
        """Make room."""
        self.values = grown(self.values, things)

    def added(self, at: Ints, new: Whole) -> Whole:
        """Add numbers to things one by one; the sum of its thing after each."""
        run: Callable[..., None] = summed
        if not fit(self.values[at], new):
            run = summed.py_func
            self.values, new = self.values.astype(np.object_), new.astype(np.object_)
        after = np.empty(len(at), self.values.dtype)
        run(self.values, at, new, after)
        return after


class Extremes:
    """The greatest or the least value of each thing."""

    def __init__(self, type_: Type, *, greatest: bool) -> None:
        dtype = np.dtype(np.int64) if type_ is Type.BOOLEAN else dtype_of(type_)
        self._greatest = greatest
        self._run: Callable[..., None] = outdone.py_func if dtype == np.object_ else outdone
        self.values: NDArray[Any] = np.zeros(0, dtype)
        self.known: Mask = np.zeros(0, np.bool_)

    def grow(self, things: int) -> None:
        """Make room."""
        self.values, self.known = grown(self.values, things), grown(self.known, things)

    def outdone(self, at: Ints, new: NDArray[Any], some: Mask) -> NDArray[Any]:
        """Take in values of things one by one, where there are `some`; what is kept of its thing after each,
        which says nothing before it has any.
        """
        after = np.zeros(len(at), self.values.dtype)
        self._run(self.values, self.known, at, new, some, self._greatest, after)
        return after

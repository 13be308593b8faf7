"""Index of tuples by the interval of one variable.

It is the generalized one-dimensional index of goldin-1997, section 3.1, in memory. The intervals are sorted
by their lower ends, beside the greatest upper end so far. Two binary searches give the range of positions
outside of which no interval meets another one, and one comparison of columns finds those that do.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.constraints.theory import Interval, Theory

T = TypeVar("T", bound=Hashable)
Floats = NDArray[np.float64]

# Pairs of tuples from which on an index is faster than trying all of them.
FEWEST_PAIRS = 500
# Tuples that are looked at to choose a variable, and variables whose indexes are compared.
SAMPLE = 50
MOST_COMPARED = 3
# Integers up to here are floats, too.
LARGEST_EXACT = 1 << 53


class IntervalIndex:
    """Intervals by position, found by another interval that they meet.

    Ends are rounded outwards to float64, so that an interval may be found that only nearly meets the other
    one, and none is missed.
    """

    def __init__(self, intervals: Iterable[Interval]) -> None:
        lowest, highest = ends(intervals)
        self._order = np.argsort(lowest, kind="stable")
        self._lowest = lowest[self._order]
        self._highest = highest[self._order]
        self._greatest = np.maximum.accumulate(self._highest) if len(highest) else highest

    def meeting(self, interval: Interval) -> NDArray[np.int64]:
        """The positions of the intervals that meet an interval, in ascending order.

        >>> index = IntervalIndex([Interval(Fraction(n), True, Fraction(n + 2), True) for n in range(9)])
        >>> index.meeting(Interval(Fraction(9, 2), True, Fraction(5), False)).tolist()
        [3, 4, 5]
        """
        ((lowest,), (highest,)) = ends([interval])
        first, end = self._range(lowest, highest)
        return np.sort(self._order[first:end][self._highest[first:end] >= lowest])

    def cost(self, intervals: Iterable[Interval]) -> int:
        """The number of intervals that searches for all of these look at."""
        first, end = self._range(*ends(intervals))
        return int(np.maximum(end - first, 0).sum())

    def _range(self, lowest: Floats, highest: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return (
            np.searchsorted(self._greatest, lowest, "left"),
            np.searchsorted(self._lowest, highest, "right"),
        )


class IndexedTuples(Generic[T]):
    """Tuples of one theory, with indexes by variables that are built when they are first useful."""

    def __init__(self, theory: Theory[T], tuples: Sequence[T], names: Iterable[str]) -> None:
        """`names` has the variables that may be indexed: those that can be numbers."""
        self.tuples = tuples
        self._theory = theory
        self.names = tuple(names)
        self._indexes: dict[str, IntervalIndex] = {}

    def meeting(self, others: Sequence[T]) -> Iterator[tuple[T, Sequence[T]]]:
        """Each of `others` with at least those tuples that have a point in common with it, in order."""
        name = self._best(others) if len(self.tuples) * len(others) >= FEWEST_PAIRS else None
        if name is None:
            yield from ((other, self.tuples) for other in others)
            return
        index = self._index(name)
        for other in others:
            found = index.meeting(self._theory.interval(other, name))
            yield other, [self.tuples[at] for at in found.tolist()]

    def _best(self, others: Sequence[T]) -> str | None:
        """The variable whose index has the least to look at; None if none excludes a tuple."""
        sample = others[:: max(1, len(others) // SAMPLE)]
        intervals = {name: [self._theory.interval(other, name) for other in sample] for name in self.names}
        ends_of = {
            name: sum((each.lower is not None) + (each.upper is not None) for each in found)
            for name, found in intervals.items()
        }
        names = sorted((name for name in self.names if ends_of[name]), key=lambda name: -ends_of[name])
        # An index costs an interval of each tuple, which few searches don't repay.
        most = min(MOST_COMPARED, 1 + len(others) // 10)
        costs = {name: self._index(name).cost(intervals[name]) for name in names[:most]}
        best = min(costs, key=costs.__getitem__, default=None)
        return None if best is None or costs[best] == len(self.tuples) * len(sample) else best

    def _index(self, name: str) -> IntervalIndex:
        if name not in self._indexes:
            self._indexes[name] = IntervalIndex(self._theory.interval(each, name) for each in self.tuples)
        return self._indexes[name]


def ends(intervals: Iterable[Interval]) -> tuple[Floats, Floats]:
    """The ends of intervals, rounded outwards; infinite ones are -inf and inf."""
    pairs = [
        (
            -math.inf if each.lower is None else -_at_least(-each.lower),
            math.inf if each.upper is None else _at_least(each.upper),
        )
        for each in intervals
    ]
    columns = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _at_least(value: Fraction) -> float:
    """A float that is not below a number: the nearest one, or the next above it."""
    if value.denominator == 1 and abs(value.numerator) <= LARGEST_EXACT:
        return float(value.numerator)
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float(np.finfo(np.float64).max)
    return near if near >= value else math.nextafter(near, math.inf)

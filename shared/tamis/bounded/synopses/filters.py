"""Filters: the conditions of a query on the tuples of one occurrence alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.bounded.conjunctive.difference_bounds import Bound, Closure
from tamis.bounded.conjunctive.normal_form import Conjunction, Difference
from tamis.bounded.synopses.columns import Columns, Mask, beyond, equals


class Filter:
    """Everything that follows for the tuples of one occurrence. A condition on a NULL counts as true."""

    def __init__(self, query: Conjunction, closure: Closure, occurrence: int) -> None:
        own = (0, *query.own(occurrence))
        ranges = [one for one in query.ranges if (one.left or one.right) in own]
        follows = [
            Difference(a, b, int(closure.between(a, b)))
            for a in own
            for b in own
            if a != b and closure.finite(a, b)
        ]
        self._differences = ranges + follows
        self._unequal = [
            one for one in query.unequal if query.occurrence(one.left or one.right) == occurrence
        ]

    def keeps(self, columns: Columns, rows: int) -> Mask:
        """The tuples of a batch that pass. `columns` are those of the occurrence's nodes. Texts may have any
        numbers that differ, but constants have theirs.
        """
        kept = np.ones(rows, np.bool_)
        for one in self._differences:
            kept &= ~beyond(columns, one)
        for other in self._unequal:
            kept &= ~equals(columns, other)
        return kept

    def passes(self, values: Sequence[Bound | None]) -> bool:
        """True if one tuple passes. Its numbers may have any size."""
        for one in self._differences:
            left = 0 if one.left == 0 else values[one.left]
            right = 0 if one.right == 0 else values[one.right]
            if left is not None and right is not None and left - right > one.bound:
                return False
        for other in self._unequal:
            left = 0 if other.left == 0 else values[other.left]
            right = 0 if other.right == 0 else values[other.right]
            if left is not None and right is not None and left - right == other.offset:
                return False
        return True

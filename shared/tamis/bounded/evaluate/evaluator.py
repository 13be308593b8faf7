"""A bounded conjunction, tuple by tuple: arasu-2004, section 7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.coordinates import cells
from tamis.bounded.evaluate.columns import Columns, Mask, TakenIn, TooLargeError, keep
from tamis.bounded.evaluate.join import Condition, Join
from tamis.bounded.evaluate.synopsis import Entry, Merge, Synopsis, Values
from tamis.bounded.keyed import told
from tamis.bounded.normal_form import Conjunction, Difference

Row = tuple[tuple[object, ...], int]  # the payloads by occurrence, and how many rows these stand for


class Evaluator:
    """Evaluates one conjunction without contradiction. `holds` is a condition beyond its differences; `asked`
    is the query with what else is asked of its tuples (see `extremes`), by which they are kept; `merge` takes
    a later tuple's payload into that of the first one of its bucket, without DISTINCT.

    The synopses are bounded where `decide.violation` finds none; the results are right in any case.
    """

    def __init__(
        self,
        query: Conjunction,
        closure: Closure,
        holds: Condition | None = None,
        asked: tuple[Conjunction, Closure] | None = None,
        merge: Merge | None = None,
    ) -> None:
        self.query, self.holds = query, holds
        wider = asked or (query, closure)
        self._join = Join(query, closure)
        self.synopses = [
            Synopsis(
                cells(*wider, i) if len(query.streams) > 1 else (),
                query.distinct,
                told(*wider, i),
                merge,
                tuple(sorted(self._join.indexes(i))),
            )
            for i in range(len(query.streams))
        ]
        self._taken_in = [TakenIn(one.layouts, one.needed) for one in self.synopses]
        self._filters = [self._filter(closure, i) for i in range(len(query.streams))]
        self._unequal = [
            [one for one in query.unequal if query.occurrence(one.left or one.right) == i]
            for i in range(len(query.streams))
        ]

    @property
    def entries(self) -> int:
        """How many entries the synopses have now."""
        return sum(map(len, self.synopses))

    def push(self, occurrence: int, values: Values, payload: object) -> Iterator[Row]:
        """A tuple at one occurrence: what it adds to the result. `values` stand at its nodes' numbers (others
        are not read), None for NULL; a NULL that the query compares must be left out before.

        Take all rows before the next tuple is pushed. A tuple of a self-join is pushed at each occurrence.
        """
        if not self.passes(occurrence, values):
            return
        new = Entry(values, payload)
        for chosen in self._join.rows(occurrence, new, self.synopses):
            if self.holds is None or self.holds(chosen):
                count = 1
                for entry in chosen:
                    count *= entry.count
                yield tuple(entry.payload for entry in chosen), count
        self.synopses[occurrence].insert(values, payload)

    def keeps(self, occurrence: int, columns: Columns, rows: int) -> Mask:
        """Which tuples of a batch keep all conditions on their occurrence. `columns` are those of its nodes;
        texts may have any different numbers, but constants theirs.

        Raises TooLargeError: then ask `passes` of each.
        """
        return keep(rows, columns, self._filters[occurrence], self._unequal[occurrence])

    def told_by(self, occurrence: int) -> set[int]:
        """The nodes whose values say which tuples must be pushed."""
        return self._taken_in[occurrence].nodes if self.query.distinct else set()

    def moving(self, occurrence: int, columns: Columns, rows: int) -> Mask:
        """Which of such tuples must be pushed: the others add nothing to the result, nor to what is kept,
        once those that were named before are pushed. `columns` are those of `told_by`, in which a value has
        the same number in every batch.
        """
        if not self.query.distinct or len(self.query.streams) == 1:
            return np.ones(rows, np.bool_)
        try:
            return self._taken_in[occurrence].of(columns, rows)
        except TooLargeError:
            return np.ones(rows, np.bool_)

    def _filter(self, closure: Closure, occurrence: int) -> list[Difference]:
        """All that follows of the tuples of one occurrence alone."""
        own = (0, *self.query.own(occurrence))
        ranges = [one for one in self.query.ranges if (one.left or one.right) in own]
        follows = [
            Difference(a, b, int(closure.between(a, b)))
            for a in own
            for b in own
            if a != b and closure.finite(a, b)
        ]
        return ranges + follows

    def passes(self, occurrence: int, values: Sequence[Bound | None]) -> bool:
        """Does a tuple keep all conditions on its occurrence?"""
        for one in self._filters[occurrence]:
            left = 0 if one.left == 0 else values[one.left]
            right = 0 if one.right == 0 else values[one.right]
            if left is not None and right is not None and left - right > one.bound:
                return False
        for other in self._unequal[occurrence]:
            left = 0 if other.left == 0 else values[other.left]
            right = 0 if other.right == 0 else values[other.right]
            if left is not None and right is not None and left - right == other.offset:
                return False
        return True

"""Evaluator of a bounded conjunction, tuple by tuple (arasu-2004, section 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.difference_bounds import Bound, Closure
from tamis.operators.synopses.bucket_coordinates import cells
from tamis.operators.synopses.columns import Columns, InsertFilter, Mask, beyond, equals
from tamis.operators.synopses.join import Condition, Join
from tamis.operators.synopses.synopsis import Entry, Synopsis, Values
from tamis.plan.conjunction import Conjunction, Difference, bucket_nodes

Row = tuple[tuple[object, ...], int]  # the payloads by occurrence, and how many rows these stand for


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


class Evaluator:
    """Evaluates one conjunction, which must not contradict itself.

    `holds` is the condition that can't be written as differences. `kept_by` is given for MAX and MIN: the
    wider query that decides which tuples are kept (see `extremes`). The synopses are bounded if
    `decide.violation` finds nothing; the rows are right in any case.
    """

    def __init__(
        self,
        query: Conjunction,
        closure: Closure,
        holds: Condition | None = None,
        kept_by: tuple[Conjunction, Closure] | None = None,
    ) -> None:
        self.query, self.holds = query, holds
        wider = kept_by or (query, closure)
        self._join = Join(query, closure)
        self.synopses = [
            Synopsis(
                cells(*wider, i) if len(query.streams) > 1 else (),
                query.distinct,
                bucket_nodes(*wider, i),
                tuple(sorted(self._join.indexes(i))),
            )
            for i in range(len(query.streams))
        ]
        self._insert_filters = [InsertFilter(one.layouts, one.needed) for one in self.synopses]
        self._filters = [Filter(query, closure, i) for i in range(len(query.streams))]

    @property
    def entries(self) -> int:
        """The number of entries that the synopses have now."""
        return sum(map(len, self.synopses))

    def push(self, occurrence: int, values: Values, payload: object) -> Iterator[Row]:
        """Take a tuple at one occurrence, and yield the rows that it adds.

        `values` stand at the numbers of its nodes (no others are read), with None for NULL; a tuple with a
        NULL that the query compares must not be pushed. Take all rows before the next tuple is pushed. Push a
        tuple of a self-join at each occurrence.
        """
        if not self._filters[occurrence].passes(values):
            return
        new = Entry(values, payload)
        for chosen in self._join.rows(occurrence, new, self.synopses):
            if self.holds is None or self.holds(chosen):
                count = 1
                for entry in chosen:
                    count *= entry.count
                yield tuple(entry.payload for entry in chosen), count
        self.synopses[occurrence].insert(values, payload)

    def insert_nodes(self, occurrence: int) -> set[int]:
        """The nodes whose values decide, under DISTINCT, which tuples must be pushed."""
        return self._insert_filters[occurrence].nodes

    def inserts(self, occurrence: int, columns: Columns, rows: int) -> Mask:
        """The tuples of a batch that must be pushed, under DISTINCT, of those that satisfy all conditions on
        their occurrence.

        The other tuples change neither the result nor the synopses once the tuples found so far are pushed.
        `columns` are those of `insert_nodes`, in which a value has the same number in every batch.
        """
        return self._insert_filters[occurrence].of(columns, rows)

"""How the tuples of each occurrence of a query come, and a query with that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.normal_form import Conjunction


@dataclass(frozen=True)
class Arrival:
    """One occurrence. `time` is the node of its event time, in microseconds, 0 where it has none; `rows`
    how many rows a static relation has, None for a stream; `rate`: at most so many tuples, over all keys, in
    any span of so many microseconds.
    """

    time: int = 0
    rows: int | None = None
    rate: tuple[int, int] | None = None

    def most(self, span: Bound) -> Bound:
        """How many tuples there are in a closed span of time; infinity where nobody says."""
        if span < 0:
            return 0
        if self.rate is None or span == math.inf:
            return math.inf
        count, per = self.rate
        return count * (int(span) // per + 1)


@dataclass(frozen=True)
class Timed:
    """A conjunction over streams with and without application time, and static relations.

    `closure` knows the limits of relations and the ends of finite streams. `values` are those of a static
    relation's nodes, rising, without NULL.
    """

    query: Conjunction
    closure: Closure
    arrivals: tuple[Arrival, ...]
    values: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def streams(self) -> tuple[int, ...]:
        """The occurrences that aren't static."""
        return tuple(i for i, one in enumerate(self.arrivals) if one.rows is None)

    @property
    def statics(self) -> tuple[int, ...]:
        """The occurrences of static relations."""
        return tuple(i for i, one in enumerate(self.arrivals) if one.rows is not None)

    @property
    def times(self) -> frozenset[int]:
        """All nodes of event time."""
        return frozenset(one.time for one in self.arrivals if one.time)

    @property
    def told(self) -> frozenset[int]:
        """The nodes whose values are kept as they are: those of SELECT and of conditions that are no
        differences, and event times and what isn't one where they are compared with each other.
        """
        mixed = [
            one
            for one in self.query.differences
            if one.left and one.right and (one.left in self.times) != (one.right in self.times)
        ]
        return frozenset(self.query.needed).union(*((one.left, one.right) for one in mixed))

    def end(self, occurrence: int) -> Bound:
        """When the last tuple of an occurrence that matters comes: infinity for an infinite stream."""
        time = self.arrivals[occurrence].time
        return self.closure.upper(time) if time else math.inf

    def lead(self, later: int, earlier: int) -> Bound:
        """By how much the tuple of one occurrence can be later than that of another at most; infinity where
        only limits of each by itself say so.
        """
        a, b = self.arrivals[later].time, self.arrivals[earlier].time
        if not a or not b:
            return math.inf
        found = self.closure.between(a, b)
        return math.inf if found >= self.closure.upper(a) - self.closure.lower(b) else found

    def compared(self, one: int, other: int) -> bool:
        """Are the times of two occurrences compared, directly or by way of others?"""
        return self.lead(one, other) != math.inf or self.lead(other, one) != math.inf

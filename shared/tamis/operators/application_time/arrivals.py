"""Arrivals: event times, static relations and declared rates of a query's occurrences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound, Closure
from tamis.plan.conjunction import Conjunction


@dataclass(frozen=True)
class Arrival:
    """The arrival of one occurrence's tuples.

    `time` is the node of the occurrence's event time, in microseconds; 0 if it has no event time. `rows` is
    the number of rows of a static relation; None for a stream. `rate` is (tuples, microseconds): the greatest
    number of tuples, over all keys, in any span of this length.
    """

    time: int = 0
    rows: int | None = None
    rate: tuple[int, int] | None = None

    def most_tuples(self, span: Bound) -> Bound:
        """The greatest number of tuples in a closed span of time; infinity if no rate is declared."""
        if span < 0:
            return 0
        if self.rate is None or span == math.inf:
            return math.inf
        count, per = self.rate
        return count * (int(span) // per + 1)


@dataclass(frozen=True)
class TimedQuery:
    """A conjunction over streams with and without application time, and static relations.

    `closure` includes the limits of relations and the ends of finite streams. `values` are the values of a
    static relation's nodes, ascending, without NULL.
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
    def kept_nodes(self) -> frozenset[int]:
        """The nodes whose values are kept as they are: those of SELECT and of conditions that are no
        differences, and both sides of a comparison between an event time and another value.
        """
        mixed = [
            one
            for one in self.query.differences
            if one.left and one.right and (one.left in self.times) != (one.right in self.times)
        ]
        return frozenset(self.query.needed).union(*((one.left, one.right) for one in mixed))

    def end(self, occurrence: int) -> Bound:
        """The time of the last tuple of an occurrence that matters; infinity for an infinite stream."""
        time = self.arrivals[occurrence].time
        return self.closure.upper(time) if time else math.inf

    def lead(self, later: int, earlier: int) -> Bound:
        """The greatest time by which the tuple of one occurrence can be later than that of another.

        It is infinity if only the separate limits of both times bound it.
        """
        a, b = self.arrivals[later].time, self.arrivals[earlier].time
        if not a or not b:
            return math.inf
        found = self.closure.between(a, b)
        return math.inf if found >= self.closure.upper(a) - self.closure.lower(b) else found

    def compared(self, one: int, other: int) -> bool:
        """True if the times of two occurrences are compared, directly or through other occurrences."""
        return self.lead(one, other) != math.inf or self.lead(other, one) != math.inf


def rate_of(stream: StreamDef) -> tuple[int, int] | None:
    """The greatest number of tuples, of all keys together, in any span of time: (tuples, microseconds)."""
    keys = stream.keys if stream.key else 1
    return None if keys is None or stream.rate is None else (keys * stream.rate.count, stream.rate.per)

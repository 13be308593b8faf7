"""Estimated numbers of tuples, from the intervals of variables (goldin-1997, sections 3.1 and 3.3).

Two tuples can only join if their intervals of each common variable overlap. The share of such pairs is
counted for each variable, and the shares are multiplied as if the variables were independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tamis.constraints.relation import Relation
from tamis.constraints.theory import Interval

T = TypeVar("T")

# Intervals of more tuples hardly change an estimate.
_SAMPLE = 64


@dataclass(frozen=True)
class Statistics:
    """The estimated number of tuples, and the intervals of each variable in a sample of them."""

    tuples: float
    intervals: Mapping[str, Sequence[Interval]]

    def projected(self, names: Sequence[str]) -> Statistics:
        """Without the other variables."""
        return Statistics(self.tuples, {name: self.intervals[name] for name in names})

    def renamed(self, names: Mapping[str, str]) -> Statistics:
        """With other names of variables."""
        return Statistics(self.tuples, {names.get(name, name): own for name, own in self.intervals.items()})

    def united(self, other: Statistics) -> Statistics:
        """Of the union with tuples over the same variables."""
        both = {name: _sampled((*own, *other.intervals[name])) for name, own in self.intervals.items()}
        return Statistics(self.tuples + other.tuples, both)


def statistics_of(relation: Relation) -> Statistics:
    """The number of tuples of a relation, and the intervals of a sample of them."""
    sample = _sampled(relation.tuples)
    found = {name: [relation.theory.interval(one, name) for one in sample] for name in relation.variables}
    return Statistics(len(relation.tuples), found)


def joined(left: Statistics, right: Statistics) -> Statistics:
    """The estimate of the natural join."""
    share = 1.0
    for name, own in left.intervals.items():
        pairs = [(one, other) for one in own for other in right.intervals.get(name, ())]
        if pairs:
            share *= sum(_overlap(one, other) for one, other in pairs) / len(pairs)
    return Statistics(left.tuples * right.tuples * share, {**right.intervals, **left.intervals})


def _sampled(items: Sequence[T]) -> Sequence[T]:
    """At most `_SAMPLE` of the items, evenly spaced."""
    return items[:: -(-len(items) // _SAMPLE) or 1]


def _overlap(one: Interval, other: Interval) -> bool:
    return _below(one, other) and _below(other, one)


def _below(one: Interval, other: Interval) -> bool:
    """Tell if some value of `one` is at most some value of `other`."""
    if one.lower is None or other.upper is None or one.lower < other.upper:
        return True
    return one.lower == other.upper and one.lower_closed and other.upper_closed

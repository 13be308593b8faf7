"""DOUBLE columns as attributes without limits, interval by interval.

There are so many DOUBLEs between two numbers that an interval such as `x BETWEEN 0 AND 1` doesn't limit
memory. So DOUBLE attributes are treated as follows:

1. The constants of the query divide all DOUBLEs into intervals and single numbers.
2. The query is split into parts, so that in each part every DOUBLE attribute has a fixed interval.
3. The interval becomes a filter on tuples. Comparisons between attributes of different intervals follow from
   the intervals and are dropped.
4. Within an interval only the order of values matters. So the remaining comparisons are decided as for whole
   numbers without limits.

An attribute that is fixed to a single number is limited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tamis.bounded.conjunctive.difference_bounds import Bound, Closure
from tamis.bounded.conjunctive.normal_form import Conjunction, Difference
from tamis.bounded.timeless.alternatives import MOST

Interval = tuple[Bound, Bound]


def split_by_intervals(
    query: Conjunction, closure: Closure, dense: Sequence[int]
) -> Iterator[tuple[Conjunction, Closure]]:
    """The parts of a query by the intervals of its DOUBLE nodes, without parts that contradict themselves."""
    edges: set[Bound] = {closure.lower(node) for node in dense}
    edges |= {closure.upper(node) + 1 for node in dense}
    cuts = sorted(edge for edge in edges if math.isfinite(edge))
    intervals = [_intervals(query, closure, node, cuts) for node in dense]
    if math.prod(map(len, intervals)) > MOST:
        doubt = "its DOUBLE columns may lie in too many intervals between constants"
        query = replace(query, caveats=(*query.caveats, doubt))
        intervals = [[(closure.lower(node), closure.upper(node))] for node in dense]
    for chosen in itertools.product(*intervals):
        part = closure.copy()
        if all(_within(part, node, one) for node, one in zip(dense, chosen, strict=True)):
            found = _without(query, part, dense)
            own = found.closure()
            if own is not None:
                yield found, own


def _intervals(query: Conjunction, closure: Closure, node: int, cuts: Sequence[Bound]) -> list[Interval]:
    """The intervals between cuts in which a node can lie. A node that may be NULL is not compared, and has
    one interval.
    """
    low, high = closure.lower(node), closure.upper(node)
    if query.nodes[node - 1].nullable:
        return [(low, high)]
    starts = [low, *(cut for cut in cuts if low < cut <= high)]
    return list(zip(starts, [*(cut - 1 for cut in starts[1:]), high], strict=True))


def _within(part: Closure, node: int, one: Interval) -> bool:
    return part.add(node, 0, one[1]) and part.add(0, node, -one[0])


def _without(query: Conjunction, part: Closure, dense: Sequence[int]) -> Conjunction:
    """The query in one choice of intervals, with the limits of each node as a filter."""
    loose = {node for node in dense if part.values(node) > 1}
    left = [
        one
        for one in query.differences
        if not {one.left, one.right} & loose
        or ({one.left, one.right} <= loose and part.upper(one.left) - part.lower(one.right) > one.bound)
    ]
    limits = {
        node: [
            Difference(*ends, int(bound))
            for ends, bound in (((node, 0), part.upper(node)), ((0, node), -part.lower(node)))
            if math.isfinite(bound)
        ]
        for node in dense
    }
    points = [one for node in dense if node not in loose for one in limits[node]]
    ranges = [one for node in dense if node in loose for one in limits[node]]
    return replace(query, differences=(*left, *points), ranges=tuple(ranges))

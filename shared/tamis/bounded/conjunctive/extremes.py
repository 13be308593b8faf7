"""MAX and MIN as comparisons with an artificial stream of all values (arasu-2004, theorem 8.6).

MAX(a) is the greatest z for which some row has `z <= a`. So a query with MAX(a) needs the same memory as a
DISTINCT query without it that also joins a stream of all numbers z by `z <= a`. For MIN(a) the condition is
`a <= z`. The verdict on this DISTINCT query replaces condition C3 of the theorem. That condition accepts some
unbounded queries and refuses some bounded ones: for example, it accepts `MAX(s.b)` with `s.b < t.d`, which is
unbounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tamis.bounded.conjunctive.difference_bounds import Closure
from tamis.bounded.conjunctive.normal_form import (
    EXTREME_STREAM,
    Conjunction,
    Difference,
    Node,
)


def with_extreme(
    query: Conjunction, closure: Closure, node: int, extreme: Literal["max", "min"]
) -> tuple[Conjunction, Closure]:
    """The query and its closure, with the stream of all z as the last occurrence and node."""
    last = query.size
    bound = Difference(last, node, 0) if extreme == "max" else Difference(node, last, 0)
    wider = replace(
        query,
        streams=(*query.streams, EXTREME_STREAM),
        aliases=(*query.aliases, EXTREME_STREAM),
        nodes=(*query.nodes, Node(len(query.streams), f"{extreme}({query.name(node)})", "value")),
        differences=(*query.differences, bound),
    )
    size = len(closure.rows)
    rows = [[*row, float("inf")] for row in closure.rows]
    found = Closure([*rows, [float("inf")] * size + [0]])
    found.add(bound.left, bound.right, bound.bound)
    return wider, found

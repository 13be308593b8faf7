"""MAX and MIN of an attribute as a comparison with a stream that nobody sends (arasu-2004, theorem 8.6).

MAX(a) is the greatest z for which some row has `z <= a`. So a query with MAX(a) needs what the DISTINCT query
needs that also joins a stream of all z by `z <= a`, and MIN(a) by `a <= z`. This replaces condition C3 of the
theorem, which errs both ways: `MAX(s.b)` under `s.b < t.d` asks s for its greatest b as well as its least.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import ASKED, Conjunction, Difference, Node


def asking(
    query: Conjunction, closure: Closure, node: int, extreme: Literal["max", "min"]
) -> tuple[Conjunction, Closure]:
    """A query and its closure with the stream of all z as the last occurrence and node."""
    last = query.size
    bound = Difference(last, node, 0) if extreme == "max" else Difference(node, last, 0)
    wider = replace(
        query,
        streams=(*query.streams, ASKED),
        aliases=(*query.aliases, ASKED),
        nodes=(*query.nodes, Node(len(query.streams), f"{extreme}({query.name(node)})", "value")),
        differences=(*query.differences, bound),
    )
    size = len(closure.rows)
    rows = [[*row, float("inf")] for row in closure.rows]
    found = Closure([*rows, [float("inf")] * size + [0]])
    found.add(bound.left, bound.right, bound.bound)
    return wider, found

"""Attributes that are limited by the number of keys of their stream: nobody knows which values they have, but
there are only so many.

A tuple's key is known when it comes, so that among the tuples of one key its attributes are as good as
constants, and so is what lies at a limited distance from one of them: these nodes are *pinned*. Their values
belong to every bucket, and their comparisons with other streams need no representative. What other streams
bring is not limited by it: which keys are still to come isn't known, so `s.k = t.j` limits t.j only where it
is limited by itself. The other nodes of the stream are in the place that they would have in a query without
the pinned ones, whose closure is the same: what the theorems say of that query, they say of each key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.normal_form import Conjunction


def pinned(query: Conjunction, closure: Closure) -> Mapping[int, int]:
    """The nodes without limits of their own that are pinned: for each, the nearest node of its key."""
    found = {}
    for group in query.keyed:
        occurrence = query.occurrence(group.nodes[0])
        for node in query.own(occurrence):
            if not closure.bounded(node):
                nearest = min(group.nodes, key=lambda key: spread(closure, node, key))
                if math.isfinite(spread(closure, node, nearest)):
                    found[node] = nearest
    return found


def spread(closure: Closure, node: int, other: int) -> Bound:
    """How many values a node can have for each value of another one."""
    return closure.between(node, other) + closure.between(other, node) + 1


def told(query: Conjunction, closure: Closure, occurrence: int) -> tuple[int, ...]:
    """The nodes of an occurrence whose values belong to every bucket: what is shown, and what is pinned and
    compared with other streams.
    """
    own = query.own(occurrence)
    others = [node for node in range(1, query.size) if node not in own]
    compared = [
        node
        for node in pinned(query, closure)
        if node in own and any(closure.finite(node, other) or closure.finite(other, node) for other in others)
    ]
    return tuple(dict.fromkeys((*(node for node in query.needed if node in own), *compared)))

"""Attributes that are limited by the number of keys of their stream.

The values of a key are not known in advance, but their number is declared. Consider only the tuples of one
key: the key attributes are constants there. A node at a limited distance from a key attribute has a limited
number of values there. Both kinds of nodes are *pinned*. If a pinned node is compared with another stream,
its value belongs to the bucket of the tuple, so this comparison needs no representative.

The other nodes of the stream are treated as in a query without the pinned nodes. That query has the same
closure, so the results of the theorems for it hold for each key.

The key of one stream does not limit other streams, because the keys that are still to come are not known:
`s.k = t.j` limits t.j only if t.j is limited itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tamis.bounded.conjunctive.difference_bounds import Bound, Closure
from tamis.bounded.conjunctive.normal_form import Conjunction


def pinned(query: Conjunction, closure: Closure) -> Mapping[int, int]:
    """The pinned nodes that are not limited themselves; for each, the nearest node of its key."""
    found = {}
    for group in query.key_limits:
        occurrence = query.occurrence(group.nodes[0])
        for node in query.own(occurrence):
            if not closure.bounded(node):
                nearest = min(group.nodes, key=lambda key: spread(closure, node, key))
                if math.isfinite(spread(closure, node, nearest)):
                    found[node] = nearest
    return found


def spread(closure: Closure, node: int, other: int) -> Bound:
    """The number of values that a node can have for each value of another one."""
    return closure.between(node, other) + closure.between(other, node) + 1


def bucket_nodes(query: Conjunction, closure: Closure, occurrence: int) -> tuple[int, ...]:
    """The nodes of an occurrence whose values belong to every bucket: projected nodes, and pinned nodes that
    are compared with other streams.
    """
    own = query.own(occurrence)
    others = [node for node in range(1, query.size) if node not in own]
    compared = [
        node
        for node in pinned(query, closure)
        if node in own and any(closure.finite(node, other) or closure.finite(other, node) for other in others)
    ]
    return tuple(dict.fromkeys((*(node for node in query.needed if node in own), *compared)))

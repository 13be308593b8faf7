"""Comparisons between streams that need memory: MaxRef and MinRef of arasu-2004, with offsets.

If an attribute may be arbitrarily large or small, the sizes of offsets don't matter. What matters is which
differences have a bound at all. The closure is therefore read as a graph: an *edge* `u -> v` says that `u -
v` has a finite upper bound. Node 0 belongs to the graph, which is closed under composition.

An edge between two streams is *active* at the high side if its tail has no upper bound. Both ends can then be
high together while no known value lies between them, so the comparison isn't redundant (arasu-2004,
definition 4.1). An edge is active at the low side if its head has no lower bound.

Let an edge `y -> x` into stream S be active at one side. Then x is in MaxRef(S) of some derived LTO query, at
the same side. Likewise, an active edge `x -> y` out of S puts x into MinRef(S) (definition 5.4). Conversely,
every nonredundant comparison of a derived LTO query is an active edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.conjunctive.difference_bounds import Closure
from tamis.bounded.conjunctive.key_limits import pinned
from tamis.bounded.conjunctive.normal_form import Conjunction

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Edges:
    """Active edges of one occurrence, all in one direction. `inner` are its own nodes, `outer` those of other
    occurrences.
    """

    inner: Numbers
    outer: Numbers
    low: Mask
    high: Mask

    def __len__(self) -> int:
        return len(self.inner)


def reach(closure: Closure) -> Mask:
    """The graph of finite bounds: shape (size, size)."""
    return np.array([[entry != math.inf for entry in row] for row in closure.rows], np.bool_)


def references(query: Conjunction, closure: Closure, occurrence: int) -> tuple[Edges, Edges]:
    """The active edges into an occurrence (its MaxRef) and out of it (its MinRef), without pinned nodes."""
    graph = reach(closure)
    own = np.array([0, *(n.occurrence == occurrence for n in query.nodes)], np.bool_)
    other = ~own
    other[0] = False
    own[[node for node in pinned(query, closure) if own[node]]] = False
    into = _edges(graph, other, own)
    out = _edges(graph, own, other)
    return Edges(into[1], into[0], into[2], into[3]), Edges(out[0], out[1], out[2], out[3])


def _edges(graph: Mask, tails: Mask, heads: Mask) -> tuple[Numbers, Numbers, Mask, Mask]:
    tail, head = np.nonzero(graph & tails[:, None] & heads[None, :])
    high, low = ~graph[tail, 0], ~graph[0, head]
    active = high | low
    return tail[active], head[active], low[active], high[active]

"""Comparisons between streams that need memory: MaxRef and MinRef of arasu-2004, with offsets.

A query such as `s.a < t.b` must remember values of s.a while later values of t.b may be larger or smaller
than all values so far. For such attributes the size of an offset (`s.a < t.b + 3`) does not matter, only
whether a difference is limited at all. So the closure is read as a graph: an *edge* `u -> v` says that the
difference `u - v` has a finite upper bound. The graph includes node 0, which stands for the constants. If it
has the edges `u -> v` and `v -> w`, it also has `u -> w`.

An edge between nodes of two streams is *active* at the high side if its tail u has no upper bound. Then u and
v can both be greater than all constants, and the comparison isn't redundant (definition 4.1 of the paper). An
edge is active at the low side if its head v has no lower bound.

The active edges are what the paper calls references (definition 5.4). Let S be a stream with the node x, and
let y be a node of another stream. If `y -> x` is active, then x is in MaxRef(S) of some derived LTO query, at
the same side. If `x -> y` is active, then x is in MinRef(S) of some derived LTO query. Conversely, every
comparison of a derived LTO query that isn't redundant is an active edge.
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

"""Which comparisons between streams need memory: MaxRef and MinRef, seen from far away.

Once an attribute may be arbitrarily large or small, sizes of offsets no longer matter: what counts is which
differences have a bound at all. So the closure is read as a graph with an *edge* `u -> v` where `u - v` has a
finite upper bound, node 0 included, which is closed under composition. An edge between two streams is
*active* at the high side where its tail has no upper bound (then both ends can be high together, with nothing
known to lie between them: the comparison isn't redundant in arasu-2004's definition 4.1), and at the low side
where its head has no lower bound. An edge `y -> x` into stream S puts x into MaxRef(S) of some derived LTO
query, at that side, and an edge `x -> y` out of S puts x into MinRef(S) (definition 5.4). Conversely a
nonredundant comparison of a derived LTO query is such an edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Closure
from tamis.bounded.keyed import pinned
from tamis.bounded.normal_form import Conjunction

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Edges:
    """Active edges of one occurrence, all in one direction: `inner` are its own nodes, `outer` those of
    others.
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
    """The active edges into an occurrence, which are its MaxRef, and out of it, which are its MinRef; none of
    nodes that are pinned.
    """
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

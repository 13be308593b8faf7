"""The verdict in polynomial time (arasu-2004, section 6), read from the graph of bounds.

The paper decides on *locally totally ordered* (LTO) queries, which derive from the query (see
`tests.oracle.bounded.totally_ordered`). There are exponentially many of them, so its section 6 looks at every
four attributes and derives all LTO queries over these. This module has the result of that derivation in
closed form, so that no LTO query has to be derived.

`references` says which comparisons between streams are *active edges*. With DISTINCT, a query fails
if two active edges of one stream S are in the same derived LTO query, and have different classes of S or
different directions. This is so exactly in these cases:

- both go into S, e1 = y1 -> x1 and e2 = y2 -> x2, with x1 far below x2: e2 stays nonredundant only if not y2
  -> x1. Sides may be (low, low), (low, high) or (high, high);
- both go out of S, x1 -> y1 and x2 -> y2, with x1 far below x2: only if not x2 -> y1. The same sides;
- one goes in, y1 -> x1, and one out, x2 -> y2: always at one side; with the first high and the second low
  only if not y1 -> y2; with the first low and the second high only if not x2 -> x1.

All other attributes of such an LTO query can be ordered without making either edge redundant. Edges at nodes
that are pinned by the key of S don't count (see `normal_form`).

The conditions of the theorems are listed below. A query without self-join and caveats is unbounded if and
only if a condition fails. If keys are limited, it is unbounded if a condition fails for a single key of the
stream.

- C1: an attribute of SELECT is neither bounded nor pinned (of two or more streams, or under DISTINCT);
- C2, C3 without DISTINCT (theorem 5.6): there is an active edge. (An equality between streams of attributes
  that aren't bounded is a pair of active edges.)
- C2, C3 with DISTINCT (theorem 5.10): there are two edges as above.

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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tamis.difference_bounds import Closure
from tamis.plan.conjunction import EXTREME_STREAM, Conjunction, pinned

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

Side = Literal["low", "high"]
PRESERVING = "arasu-2004, theorem 5.6"
ELIMINATING = "arasu-2004, theorem 5.10"
GROUPED_ALONE = "arasu-2004, theorem 8.5"
GROUPED = "arasu-2004, theorem 8.6, its C3 corrected"


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


@dataclass(frozen=True)
class Reference:
    """A comparison between streams that needs memory: `tail <= head + offset`, above ("high") or below
    ("low") all constants.
    """

    tail: int
    head: int
    side: Side


@dataclass(frozen=True)
class Violation:
    """A condition that fails. C1 names a node, C3 one reference (without DISTINCT) or two."""

    condition: Literal["C1", "C2", "C3"]
    occurrence: int
    node: int | None = None
    references: tuple[Reference, ...] = ()


def theorem(query: Conjunction) -> str:
    """The theorem that decides a query."""
    if query.grouped:
        real = [stream for stream in query.streams if stream != EXTREME_STREAM]
        return GROUPED if len(real) > 1 else GROUPED_ALONE
    return ELIMINATING if query.distinct else PRESERVING


def violation(query: Conjunction, closure: Closure) -> Violation | None:
    """The first condition that fails, C1 before the others; None if none fails."""
    return next(violations(query, closure), None)


def violations(query: Conjunction, closure: Closure) -> Iterator[Violation]:
    """All conditions that fail: of C2 and C3 one for each occurrence."""
    if len(query.streams) == 1 and not query.distinct and not query.grouped:
        return
    apart = pinned(query, closure)
    for node in query.needed:
        if not closure.bounded(node) and node not in apart:
            yield Violation("C1", query.occurrence(node), node)
    graph = reach(closure)
    for occurrence in range(len(query.streams)):
        found = reference_violation(query, closure, graph, occurrence)
        if found is not None:
            yield found


def reference_violation(
    query: Conjunction, closure: Closure, graph: Mask, occurrence: int
) -> Violation | None:
    """The condition on the comparisons of one occurrence that fails, C2 or C3. `graph` is `reach` of the
    closure.
    """
    into, out = references(query, closure, occurrence)
    pair = _conflict(graph, into, out) if query.distinct else _first(into, out)
    if pair is None:
        return None
    equal = any(closure.fixed(one.tail, one.head) for one in pair)
    return Violation("C2" if equal else "C3", occurrence, references=pair)


def _first(into: Edges, out: Edges) -> tuple[Reference, ...] | None:
    for edges, inward in ((into, True), (out, False)):
        if len(edges):
            return (_reference(edges, 0, inward, "high" if edges.high[0] else "low"),)
    return None


def _reference(edges: Edges, at: int, inward: bool, side: Side) -> Reference:
    inner, outer = int(edges.inner[at]), int(edges.outer[at])
    return Reference(outer, inner, side) if inward else Reference(inner, outer, side)


def _conflict(graph: Mask, into: Edges, out: Edges) -> tuple[Reference, Reference] | None:
    """Two references as in the module's docstring; the reference with the smaller attribute is the first."""
    same = _ordered(into, ~graph[into.outer[None, :], into.inner[:, None]])
    if same is not None:
        return _reference(into, same[0], True, same[2]), _reference(into, same[1], True, same[3])
    same = _ordered(out, ~graph[out.inner[None, :], out.outer[:, None]])
    if same is not None:
        return _reference(out, same[0], False, same[2]), _reference(out, same[1], False, same[3])
    for first, second, free in (
        ("high", "high", np.ones((len(into), len(out)), np.bool_)),
        ("low", "low", np.ones((len(into), len(out)), np.bool_)),
        ("high", "low", ~graph[into.outer[:, None], out.outer[None, :]]),
        ("low", "high", ~graph[out.inner[None, :], into.inner[:, None]]),
    ):
        a: Side = "high" if first == "high" else "low"
        b: Side = "high" if second == "high" else "low"
        pair = _where(_at(into, a)[:, None] & _at(out, b)[None, :] & free)
        if pair is not None:
            return _reference(into, pair[0], True, a), _reference(out, pair[1], False, b)
    return None


def _ordered(edges: Edges, free: Mask) -> tuple[int, int, Side, Side] | None:
    """Two edges of one direction whose inner ends may lie far apart, with the first one's below."""
    sides: tuple[tuple[Side, Side], ...] = (("high", "high"), ("low", "low"), ("low", "high"))
    for first, second in sides:
        pair = _where(_at(edges, first)[:, None] & _at(edges, second)[None, :] & free)
        if pair is not None:
            return pair[0], pair[1], first, second
    return None


def _at(edges: Edges, side: Side) -> Mask:
    return edges.high if side == "high" else edges.low


def _where(table: Mask) -> tuple[int, int] | None:
    flat = int(np.argmax(table)) if table.size else 0
    if not table.size or not table.flat[flat]:
        return None
    return flat // table.shape[1], flat % table.shape[1]

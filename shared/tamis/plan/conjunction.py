"""Normal form of a select-project-join query: difference bounds over whole numbers.

Every attribute of every occurrence of a stream is a *node*, numbered from 1. Node 0 stands for the number 0,
so that `a <= 5` is `a - 0 <= 5`. A strict comparison of whole numbers is a difference bound too: `a < b` is
`a - b <= -1`. A value that is only tested for equality (VARCHAR) is coded as a whole number: constants by
their place in a list, all others by numbers that no constant has.

Other conditions are not part of the normal form. A filter on one stream is applied to its tuples before
evaluation. A disjunction, and an inequation between streams, is split into several conjunctions (see
`tamis.bounded.timeless`). Because of such conditions, a failing condition of the theorems may prove nothing;
`caveats` then has the reason.

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
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta

from tamis.difference_bounds import Bound, Closure

Whole = Annotated[int, Meta()]  # of any size and sign
Kind = Literal["whole", "time", "dense", "text"]  # all but dense are whole numbers to the deciders

# The number of a column that must be NULL: no value that is compared is that small.
NULL = -(1 << 60)

# The artificial stream of `extremes`: no stream of a user has this name.
EXTREME_STREAM = ""
Extreme = Literal["max", "min"]


@dataclass(frozen=True)
class Difference:
    """`left - right <= bound`, of nodes."""

    left: int
    right: int
    bound: Whole


@dataclass(frozen=True)
class Unequal:
    """`left - right != offset`, of nodes of one occurrence, or with node 0."""

    left: int
    right: int
    offset: Whole


@dataclass(frozen=True)
class Node:
    """One attribute of an occurrence (from 0): its name for users, and its column, by which occurrences of
    one stream are matched.

    It may be NULL if it is `nullable`, and is always NULL if it is `null`: then its only value is the number
    `NULL`.
    """

    occurrence: int
    name: str
    column: str = ""
    nullable: bool = False
    kind: Kind = "whole"
    null: bool = False

    @property
    def null_values(self) -> int:
        """The number of values that NULL adds to those within the limits: 0 or 1."""
        return int(self.nullable and not self.null)


@dataclass(frozen=True)
class KeyLimit:
    """Nodes of one occurrence that belong to its stream's key, which takes at most `keys` values. NULL counts
    as a value.
    """

    nodes: tuple[int, ...]
    keys: int


@dataclass(frozen=True)
class Conjunction:
    """A conjunctive query. `streams[i]` is the stream of occurrence i; a self-join names a stream twice.

    - `projected`: nodes whose values SELECT shows, or that are used by a condition that isn't a difference.
    - `exact`: the projected nodes that only such a condition uses.
    - `ranges`: limits of single nodes that all tuples satisfy, but that don't make the number of values small
      (see `tamis.bounded.timeless.declared_domains`).
    - `grouped`: the query counts rows by groups and keeps the groups. The projected values are the groups.
    - `key_limits`: keys with a limited number of values.
    - `in_expressions`: projected nodes that SELECT shows only within expressions. Different values of such a
      node may give the same row.
    - `caveats`: reasons why an unbounded attribute, or a failing condition, does not yet prove the query
      unbounded.
    """

    streams: tuple[str, ...]
    aliases: tuple[str, ...]
    nodes: tuple[Node, ...]
    differences: tuple[Difference, ...]
    projected: tuple[int, ...]
    distinct: bool
    unequal: tuple[Unequal, ...] = ()
    exact: tuple[int, ...] = ()
    ranges: tuple[Difference, ...] = ()
    caveats: tuple[str, ...] = ()
    grouped: bool = False
    key_limits: tuple[KeyLimit, ...] = ()
    in_expressions: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of nodes, with node 0."""
        return len(self.nodes) + 1

    def occurrence(self, node: int) -> int:
        """The occurrence of a node (not 0)."""
        return self.nodes[node - 1].occurrence

    def name(self, node: int) -> str:
        """The name of a node (not 0), for users."""
        return self.nodes[node - 1].name

    def alias(self, node: int) -> str:
        """The alias of a node's (not 0) source."""
        return self.aliases[self.occurrence(node)]

    def own(self, occurrence: int) -> tuple[int, ...]:
        """The nodes of an occurrence."""
        return tuple(k for k, node in enumerate(self.nodes, 1) if node.occurrence == occurrence)

    @property
    def needed(self) -> tuple[int, ...]:
        """The nodes whose values must be kept as they are."""
        return tuple(dict.fromkeys((*self.projected, *self.exact)))

    @property
    def self_joined(self) -> bool:
        """True if a stream occurs twice."""
        return len(set(self.streams)) < len(self.streams)

    def inconsistent(self) -> str | None:
        """The reason why this is no conjunction that an operator can run, such as a number without a node;
        None if it is one.
        """
        if not self.streams or len(self.aliases) != len(self.streams):
            return "expected an alias for each stream"
        if any(node.occurrence >= len(self.streams) for node in self.nodes):
            return "expected the number of an occurrence"
        pairs = [(one.left, one.right) for one in (*self.differences, *self.ranges)]
        pairs += [(one.left, one.right) for one in self.unequal]
        named = [
            *self.projected,
            *self.exact,
            *self.in_expressions,
            *(n for one in self.key_limits for n in one.nodes),
        ]
        if any(not 0 <= node < self.size for pair in pairs for node in pair):
            return "expected the number of a node, or 0"
        if any(not 0 < node < self.size for node in named) or not all(one.nodes for one in self.key_limits):
            return "expected the number of a node"
        return "its bounds contradict each other" if self.closure() is None else None

    def closure(self) -> Closure | None:
        """Everything that the conditions imply about differences; None if they contradict each other."""
        return close(self.size, self.differences, self.unequal)


def close(
    size: int, differences: tuple[Difference, ...], unequal: tuple[Unequal, ...] = ()
) -> Closure | None:
    """The closure of difference bounds over whole numbers. An inequation counts where it excludes the end of
    a range.

    `10 < a < 12` and `10 < b < 12` give `a = b`:

    >>> eleven = [d for a in (1, 2) for d in (Difference(a, 0, 11), Difference(0, a, -11))]
    >>> found = close(3, tuple(eleven))
    >>> found.between(1, 2), found.between(2, 1)
    (0, 0)
    """
    found = Closure.free(size)
    for one in differences:
        if not found.add(one.left, one.right, one.bound):
            return None
    changed = True
    while changed:
        changed = False
        for other in unequal:
            for left, right, offset in (
                (other.left, other.right, other.offset),
                (other.right, other.left, -other.offset),
            ):
                if found.between(left, right) == offset:
                    changed = True
                    if not found.add(left, right, offset - 1):
                        return None
    return found


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


def with_extreme(
    query: Conjunction, closure: Closure, node: int, extreme: Extreme
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

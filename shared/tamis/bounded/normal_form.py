"""A select-project-join query as the deciders see it: differences of whole numbers, and nothing else.

Every attribute of every occurrence of a stream is a *node*, numbered from 1; node 0 stands for the number 0,
so that `a <= 5` is `a - 0 <= 5`. A strict comparison of whole numbers is a difference bound too: `a < b` is
`a - b <= -1`. A value that only takes part in equality (VARCHAR) is coded as a whole number: constants by
their place in a list, all others by numbers that no constant has.

What SQL says beyond differences is not here: filters of one stream are applied to its tuples before
evaluation, disjunctions and inequations between streams are split into several conjunctions (see
`tamis.planning.timeless`). Where that leaves a failing condition without force, `caveats` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tamis.bounded.closure import Closure

Kind = Literal["whole", "time", "dense", "text"]  # all but dense are whole numbers to the deciders

# The number of a column that must be NULL: what is compared isn't as far off.
NULL = -(1 << 60)

# The stream that nobody sends (see `extremes`): no stream of a user has this name.
ASKED = ""


@dataclass(frozen=True)
class Difference:
    """`left - right <= bound`, of nodes."""

    left: int
    right: int
    bound: int


@dataclass(frozen=True)
class Unequal:
    """`left - right != offset`, of nodes of one occurrence, or with node 0."""

    left: int
    right: int
    offset: int


@dataclass(frozen=True)
class Node:
    """One attribute: of which occurrence (from 0), what a person calls it, and its column's name, by which
    occurrences of one stream have it in common. It may be NULL where it is `nullable`, and is nothing else
    where it is `null`: then it is limited to the number `NULL`.
    """

    occurrence: int
    name: str
    column: str = ""
    nullable: bool = False
    kind: Kind = "whole"
    null: bool = False

    @property
    def besides(self) -> int:
        """How many values NULL adds to those within its limits."""
        return int(self.nullable and not self.null)


@dataclass(frozen=True)
class Keyed:
    """Nodes of one occurrence that are of its stream's key, which takes at most `keys` values; NULL counts as
    a value.
    """

    nodes: tuple[int, ...]
    keys: int


@dataclass(frozen=True)
class Conjunction:
    """A conjunctive query. `streams[i]` is the stream of occurrence i; a self-join names one twice.

    `projected` are the nodes whose values SELECT shows or a condition needs that is no difference; `exact`
    of them are needed by such a condition only. `ranges` are limits of single nodes that every tuple keeps
    and that bound nothing (see `tamis.planning.timeless.dense`). `grouped`: its rows are counted by groups,
    the projected values, and stay. `keyed`: keys with a limited number of values. `vague`: projected nodes
    that SELECT shows only within expressions, in which different values may look the same. `caveats`: why an
    attribute that isn't bounded, or a condition that fails, does not yet prove the query unbounded.
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
    keyed: tuple[Keyed, ...] = ()
    vague: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many nodes there are, node 0 included."""
        return len(self.nodes) + 1

    def occurrence(self, node: int) -> int:
        """The occurrence that a node (not 0) belongs to."""
        return self.nodes[node - 1].occurrence

    def name(self, node: int) -> str:
        """What a person calls a node (not 0)."""
        return self.nodes[node - 1].name

    def alias(self, node: int) -> str:
        """The alias of a node's (not 0) source."""
        return self.aliases[self.occurrence(node)]

    def own(self, occurrence: int) -> tuple[int, ...]:
        """The nodes of an occurrence."""
        return tuple(k for k, node in enumerate(self.nodes, 1) if node.occurrence == occurrence)

    @property
    def needed(self) -> tuple[int, ...]:
        """Nodes whose value must be kept as it is."""
        return tuple(dict.fromkeys((*self.projected, *self.exact)))

    @property
    def self_joined(self) -> bool:
        """Does a stream occur twice?"""
        return len(set(self.streams)) < len(self.streams)

    def closure(self) -> Closure | None:
        """All that the conditions imply of differences; None where they contradict each other."""
        return close(self.size, self.differences, self.unequal)

    def with_bounds(self, *more: Difference) -> Conjunction:
        """The same query with further conditions."""
        return replace(self, differences=(*self.differences, *more))


def close(
    size: int, differences: tuple[Difference, ...], unequal: tuple[Unequal, ...] = ()
) -> Closure | None:
    """The closure of difference bounds over whole numbers, an inequation taken at the ends of a range.

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

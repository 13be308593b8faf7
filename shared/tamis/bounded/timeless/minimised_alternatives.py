"""Alternatives of a query that can have rows, without what others cover (arasu-2004, section 8.1).

An occurrence A of a stream is *covered* by an occurrence B of the same stream if all conditions on A also
hold for B. Then every row of the query also arises if the tuple of B takes the place of the tuple of A, so A
can be removed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.bounded.timeless.translate import Branch, Translation, translate
from tamis.difference_bounds import Closure
from tamis.expressions.nodes import Expr, aliases
from tamis.operators.synopses.decide import violations
from tamis.plan.conjunction import Conjunction, Difference, KeyLimit
from tamis.query.model import Catalog, Query


def covered(query: Conjunction, closure: Closure) -> tuple[int, int] | None:
    """A pair of an occurrence and another one that covers it; None if there is none."""
    if not query.distinct or query.unequal or query.exact or query.ranges:
        return None
    count = len(query.streams)
    for gone in range(count):
        for kept in range(count):
            if (
                gone != kept
                and query.streams[gone] == query.streams[kept]
                and _covers(query, closure, gone, kept)
            ):
                return gone, kept
    return None


def _covers(query: Conjunction, closure: Closure, gone: int, kept: int) -> bool:
    by_column = {query.nodes[node - 1].column: node for node in query.own(kept)}
    own = set(query.own(gone))
    image = {
        node: by_column.get(query.nodes[node - 1].column) if node in own else node
        for node in range(query.size)
    }
    for left, right in itertools.permutations(range(query.size), 2):
        bound = closure.between(left, right)
        if bound == math.inf or not {left, right} & own:
            continue
        a, b = image[left], image[right]
        if a is None or b is None or closure.between(a, b) > bound:
            return False
    for node in own:
        other = image[node]
        if query.nodes[node - 1].null and (other is None or not query.nodes[other - 1].null):
            return False
        never_null = not query.nodes[node - 1].nullable
        if never_null and (other is None or query.nodes[other - 1].nullable):
            return False
        # Two NULLs have no distance: a projected value must be a number in both occurrences.
        if node in query.projected and (
            other is None
            or not never_null
            or not closure.between(node, other) == closure.between(other, node) == 0
        ):
            return False
    return True


def without(
    query: Conjunction, closure: Closure, gone: int, kept: int
) -> tuple[Conjunction, Mapping[int, int]]:
    """The query without a covered occurrence, with all that follows for the others, and the new number of
    every node.

    A node of the occurrence that is removed gets the number of the node that stands for it.
    """
    by_column = {query.nodes[node - 1].column: node for node in query.own(kept)}
    left = [node for node in range(1, query.size) if query.occurrence(node) != gone]
    number = {0: 0, **{node: place for place, node in enumerate(left, 1)}}
    nodes = tuple(
        replace(one, occurrence=one.occurrence - (one.occurrence > gone))
        for one in (query.nodes[node - 1] for node in left)
    )
    differences = tuple(
        Difference(number[a], number[b], int(closure.between(a, b)))
        for a in number
        for b in number
        if a != b and closure.finite(a, b) and _says_more(closure, a, b)
    )
    for node in query.own(gone):
        number[node] = number.get(by_column.get(query.nodes[node - 1].column, 0), 0)
    smaller = Conjunction(
        tuple(one for i, one in enumerate(query.streams) if i != gone),
        tuple(one for i, one in enumerate(query.aliases) if i != gone),
        nodes,
        differences,
        tuple(dict.fromkeys(number[node] for node in query.projected)),
        query.distinct,
        caveats=query.caveats,
        key_limits=tuple(
            KeyLimit(tuple(number[node] for node in group.nodes), group.keys)
            for group in query.key_limits
            if query.occurrence(group.nodes[0]) != gone
        ),
        in_expressions=tuple(dict.fromkeys(number[node] for node in query.in_expressions)),
    )
    return smaller, number


def _says_more(closure: Closure, a: int, b: int) -> bool:
    """True if a bound says more than the limits of both nodes. Those limits also hold for a column that may
    be NULL.
    """
    return 0 in (a, b) or closure.between(a, b) < closure.upper(a) - closure.lower(b)


@dataclass(frozen=True)
class Minimal:
    """An alternative. `representatives` names, for each source that was removed, the source whose tuple
    stands for its own.
    """

    conjunction: Conjunction
    closure: Closure
    representatives: Mapping[str, str]
    branch: Branch


def decided_translation(query: Query, catalog: Catalog) -> Translation:
    """The translation by which a query without aggregates is decided and evaluated: without CHECKs that are
    more than limits of columns, unless only these make the query bounded. Each alternative of a CHECK is
    evaluated on its own.
    """
    plain = translate(query, catalog)
    if not _fails(plain):
        return plain
    checked = translate(query, catalog, checks=True)
    return plain if _fails(checked) else checked


def _fails(translation: Translation) -> bool:
    return any(True for one in minimal(translation) for _ in violations(one.conjunction, one.closure))


def minimal(translation: Translation) -> Iterator[Minimal]:
    """Every alternative that doesn't contradict itself."""
    for branch in translation.branches:
        query = branch.conjunction
        closure: Closure | None = branch.closure
        representatives: dict[str, str] = {}
        while closure is not None:
            pair = covered(query, closure) if _alike(translation, query) else None
            if pair is None:
                yield Minimal(with_self_join_caveat(translation, query), closure, representatives, branch)
                break
            gone, kept = (query.aliases[i] for i in pair)
            representatives = {alias: kept if to == gone else to for alias, to in representatives.items()} | {
                gone: kept
            }
            query, _ = without(query, closure, *pair)
            closure = query.closure()


def with_self_join_caveat(translation: Translation, query: Conjunction) -> Conjunction:
    """An alternative, with a caveat if an example's tuples may also join by another alternative: two
    occurrences of one stream can't have different tuples.
    """
    if not query.self_joined or not (query.ranges or len(translation.branches) > 1):
        return query
    caveat = "a stream is joined with itself, and Tamis decides the alternatives of the condition one by one"
    return replace(query, caveats=(*query.caveats, caveat))


def _alike(translation: Translation, query: Conjunction) -> bool:
    """True if the differences alone describe the query, which joins a stream with itself."""
    return query.self_joined and not query.caveats and not translation.joins


def conditions(translation: Translation, minimal: Minimal, alias: str) -> list[tuple[Expr, bool]]:
    """The conditions on one source, each with True if it must be true, and False if it must not be true."""
    branch = minimal.branch
    own = [(expr, True) for expr in (*translation.filters[alias], *translation.not_null[alias])]
    chosen = [(expr, True) for expr in branch.taken] + [(expr, False) for expr in branch.excluded]
    return own + [(expr, wanted) for expr, wanted in chosen if alias in aliases(expr)]

"""Locally totally ordered (LTO) queries: all that derive from a query, and the verdict by their definition.

This is the exponential method of arasu-2004, section 5. Tests compare it with the polynomial method of
`decide`; both share only the closure of difference bounds. A query is divided by further conditions on single
streams, until in each of its parts

- every attribute that isn't bounded lies above all constants, or below all of them, by more than M; and
- two such attributes of one stream on one side are at an exact distance of at most M, or further apart,

where M is the sum of the sizes of all offsets (without offsets M is 0, and this is definition 5.1). A part
that contradicts itself is dropped. An inequation holds everywhere in a part or nowhere in it, so it can also
be a reason to drop a part.

In a part, two attributes are of one class if their distance is fixed. A comparison between two classes is
redundant if it follows by way of a third class or of the constants (definition 4.1, with distances).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tamis.difference_bounds import Closure
from tamis.operators.synopses.decide import Violation
from tamis.plan.conjunction import Conjunction


def derive(query: Conjunction, closure: Closure) -> Iterator[Closure]:
    """The closures of all LTO queries that derive from a query. Their number is exponential."""
    margin = _margin(query)
    constants = [
        d.bound if d.right == 0 else -d.bound for d in query.differences if (d.left == 0) != (d.right == 0)
    ]
    constants += [one.offset for one in query.unequal if one.right == 0]
    constants = constants or [0]
    low, high = min(constants) - margin, max(constants) + margin
    free = [node for node in range(1, query.size) if not closure.bounded(node)]
    pairs = [(a, b) for a, b in combinations(free, 2) if query.occurrence(a) == query.occurrence(b)]
    for sided in _sides(closure, free, low, high):
        for part in _apart(sided, pairs, margin, low, high):
            if not any(
                part.fixed(one.left, one.right) and part.between(one.left, one.right) == one.offset
                for one in query.unequal
            ):
                yield part


def lto_violation(query: Conjunction, part: Closure) -> Violation | None:
    """The condition of theorem 5.6 or 5.10 that an LTO query violates, by definition; None for none."""
    if len(query.streams) == 1 and not query.distinct and not query.grouped:
        return None
    for node in query.needed:
        if not part.bounded(node):
            return Violation("C1", query.occurrence(node), node)
    nodes = range(1, query.size)
    cross = [
        (a, b)
        for a in nodes
        for b in nodes
        if query.occurrence(a) != query.occurrence(b) and part.finite(a, b)
    ]
    for a, b in cross:
        if part.fixed(a, b) and not part.bounded(a):
            return Violation("C2", query.occurrence(a), a)
    most = 1 if query.distinct else 0
    for occurrence in range(len(query.streams)):
        greatest, least = reference_sets(query, part, occurrence)
        if _classes(part, greatest) + _classes(part, least) > most:
            return Violation("C3", occurrence)
    return None


def reference_sets(query: Conjunction, closure: Closure, occurrence: int) -> tuple[set[int], set[int]]:
    """MaxRef and MinRef of an occurrence (definition 5.4): its unbounded nodes that are greater, or less,
    than a node of another occurrence by a comparison that isn't redundant.
    """
    own = [node for node in query.own(occurrence) if not closure.bounded(node)]
    others = [node for node in range(1, query.size) if query.occurrence(node) != occurrence]
    greatest = {x for x in own for y in others if _needed(closure, y, x)}
    least = {x for x in own for y in others if _needed(closure, x, y)}
    return greatest, least


def _needed(closure: Closure, a: int, b: int) -> bool:
    """True if `a - b` is bounded by a comparison that isn't redundant."""
    return closure.finite(a, b) and not _redundant(closure, a, b)


def violation_by_derivation(query: Conjunction, closure: Closure) -> Violation | None:
    """The condition that some derived LTO query violates (theorem 5.3); None if none does."""
    if len(query.streams) == 1 and not query.distinct and not query.grouped:
        return None
    for part in derive(query, closure):
        found = lto_violation(query, part)
        if found is not None:
            return found
    return None


def _margin(query: Conjunction) -> int:
    bounds = [d.bound for d in query.differences if d.left and d.right]
    offsets = [one.offset for one in query.unequal if one.left and one.right]
    plain = all(bound in (0, -1) for bound in bounds) and not any(offsets)
    return 0 if plain else sum(abs(bound) for bound in (*bounds, *offsets))


def _sides(closure: Closure, free: list[int], low: int, high: int) -> Iterator[Closure]:
    if not free:
        yield closure
        return
    node, rest = free[0], free[1:]
    for lower, upper in ((None, low - 1), (low, high), (high + 1, None)):
        part = closure.copy()
        if (upper is None or part.add(node, 0, upper)) and (lower is None or part.add(0, node, -lower)):
            yield from _sides(part, rest, low, high)


def _apart(
    part: Closure, pairs: list[tuple[int, int]], margin: int, low: int, high: int
) -> Iterator[Closure]:
    if not pairs:
        yield part
        return
    (a, b), rest = pairs[0], pairs[1:]
    if not (_beyond(part, a, b, low, high)):
        yield from _apart(part, rest, margin, low, high)
        return
    exact = [(distance, distance) for distance in range(-margin, margin + 1)]
    for least, most in [(None, -margin - 1), *exact, (margin + 1, None)]:
        split = part.copy()
        if (most is None or split.add(a, b, most)) and (least is None or split.add(b, a, -least)):
            yield from _apart(split, rest, margin, low, high)


def _beyond(part: Closure, a: int, b: int, low: int, high: int) -> bool:
    """True if both nodes are above all constants, or both below."""
    above = part.lower(a) > high and part.lower(b) > high
    return above or (part.upper(a) < low and part.upper(b) < low)


def _redundant(part: Closure, a: int, b: int) -> bool:
    """True if `a - b <= c` follows from the bounds through a constant or through another class."""
    return any(
        part.between(a, other) + part.between(other, b) <= part.between(a, b)
        for other in range(len(part.rows))
        if other == 0 or not (part.fixed(a, other) or part.fixed(other, b))
    )


def _classes(part: Closure, nodes: set[int]) -> int:
    left, count = sorted(nodes), 0
    while left:
        left = [node for node in left[1:] if not part.fixed(left[0], node)]
        count += 1
    return count

"""Whether a union of boxes covers another box: what implication, exact matching and tautologies come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.errors import RefusedError
from tamis.predicates.boxes import Box, inside, meets
from tamis.predicates.cover.codes import Int32s, codes
from tamis.predicates.cover.narrowing import narrowing
from tamis.predicates.cover.split import COVERED, SPENT
from tamis.predicates.cover.zones import compares, possible_zone, zones_cover

Strategy = Callable[[Int32s, Int32s, Int32s, Int32s, int], int]

# Parts that are looked at before giving up, tens of seconds: the problem is NP-hard (section 2.2).
BUDGET = 100_000_000


def possible(box: Box) -> bool:
    """Whether a tuple may satisfy the box; False is proved. What compares no attributes is never empty."""
    return not compares(box) or possible_zone(box)


def covered(box: Box, by: Sequence[Box]) -> bool:
    """Whether the union of `by` holds all of `box`.

    Raises `RefusedError` where the answer isn't found within `BUDGET` parts, or hangs on how DOUBLEs are
    rounded.
    """
    if any(inside(box, other) for other in by):
        return True
    if compares(box) or any(compares(other) for other in by):
        return zones_cover(box, by)
    by = [other for other in by if meets(box, other)]
    if len(by) <= 1:  # the one that is left doesn't hold the box
        return False
    found = codes([box, *by])
    return decided(narrowing, found.lower[0], found.upper[0], found.lower[1:], found.upper[1:])


def decided(strategy: Strategy, lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """What a strategy answers about a box and others. Raises `RefusedError` past `BUDGET` parts."""
    answer = strategy(lo, hi, lower, upper, BUDGET)
    if answer == SPENT:
        raise RefusedError(
            f"whether {len(lower)} clauses cover another one isn't known after {BUDGET} steps",
            hint="use a simpler predicate, or match by a heuristic",
        )
    return answer == COVERED

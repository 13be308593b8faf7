"""Whether a union of boxes covers another box: what implication, exact matching and tautologies come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.errors import RefusedError
from tamis.predicates.boxes import Box, inside, meets
from tamis.predicates.cover.codes import Int32s, codes
from tamis.predicates.cover.split import COVERED, SPENT, narrowing
from tamis.predicates.cover.zones import compares, possible_zone, zones_cover

Strategy = Callable[[Int32s, Int32s, Int32s, Int32s, int], int]

# Parts that are looked at before giving up, tens of seconds: the problem is NP-hard (section 2.2).
BUDGET = 100_000_000


def possible(box: Box) -> bool:
    """Whether a tuple may satisfy the box; False is proved. What compares no attributes is never empty."""
    return not compares(box) or possible_zone(box)


def covered(box: Box, by: Sequence[Box], strategy: Strategy = narrowing, check: bool = True) -> bool:
    """Whether the union of `by` holds all of `box`; `check` looks for one that does first (Algorithm 1).
    Where attributes are compared with each other, there is one way whatever the strategy.

    Raises `RefusedError` where the answer isn't found within `BUDGET` parts, or hangs on how DOUBLEs are
    rounded.
    """
    if check and any(inside(box, other) for other in by):
        return True
    if compares(box) or any(compares(other) for other in by):
        return zones_cover(box, by)
    if strategy is narrowing:
        by = [other for other in by if meets(box, other)]
        if len(by) <= check:  # the one that is left doesn't hold the box
            return False
    one, others = codes([box], by)
    answer = strategy(one.lower[0], one.upper[0], others.lower, others.upper, BUDGET)
    if answer == SPENT:
        raise RefusedError(
            f"whether {len(by)} clauses cover another one isn't known after {BUDGET} steps",
            hint="use a simpler predicate, or match by a heuristic",
        )
    return answer == COVERED

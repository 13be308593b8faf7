"""Covering of a box by a union of boxes.

A box is *covered* if the other boxes together contain all of it. Implication, exact matching and the
detection of tautologies are decided in this way.

- `splitting`: converts boxes to arrays of whole numbers, and removes from a box the part that another box
  contains. A strategy repeats this until nothing is left of the box, or until a part remains that no other
  box contains.
- `linear_ranges`: narrows the ranges of linear forms, such as `x + y`, to what the other conditions leave.
- `zones`: decides boxes that compare attributes with each other. A zone is a matrix of bounds of differences
  between `zone_variables`.
- `witness`: finds a tuple that shows that a box isn't covered, if the rounding of DOUBLEs leaves this open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.errors import RefusedError
from tamis.predicates.boxes import Box, inside, overlap
from tamis.predicates.cover.splitting import COVERED, SPENT, Int32s, compress, filtered_depth_first
from tamis.predicates.cover.zones import compares, narrowed_box, possible_zone, zones_cover
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.linear_forms import LinearForm

Strategy = Callable[[Int32s, Int32s, Int32s, Int32s, int], int]

# The most parts that are tried, tens of seconds: the problem is NP-hard (section 2.2).
BUDGET = 100_000_000


def possible(box: Box) -> bool:
    """True if a tuple may satisfy the box; False is proved. A box is empty only if it compares attributes."""
    return not compares(box) or possible_zone(box)


def covered(box: Box, by: Sequence[Box], *, refute: bool = True) -> bool:
    """True if the union of `by` contains all of `box`.

    Raises `RefusedError` if the answer isn't found within `BUDGET` parts, or depends on the rounding of
    DOUBLEs. Without `refute` the answer is then False, and no tuple is searched that shows it.
    """
    if any(inside(box, other) for other in by):
        return True
    if not refute:
        by = [other for other in by if overlap(box, other)]
        if not by:
            return False
    made = {name for one in (box, *by) for name in one if isinstance(name, ComputedDimension)}
    if not made:
        return _covered(box, by)
    if any(isinstance(name, LinearForm) for name in made):
        # As if linear forms didn't depend on their attributes, and quickly: a yes is proved.
        within = narrowed_box(box, by)
        if within is None or _covered(within, by):
            return True
        if not refute:
            return False
    return zones_cover(box, by, refute=refute)


def _covered(box: Box, by: Sequence[Box]) -> bool:
    """The answer for dimensions that don't depend on each other."""
    by = [other for other in by if overlap(box, other)]
    if len(by) <= 1:
        return bool(by) and inside(box, by[0])
    found = compress([box, *by])
    return decided(filtered_depth_first, found.lower[0], found.upper[0], found.lower[1:], found.upper[1:])


def decided(strategy: Strategy, lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """The answer of a strategy for a box and others. Raises `RefusedError` past `BUDGET` parts."""
    answer = strategy(lo, hi, lower, upper, BUDGET)
    if answer == SPENT:
        raise RefusedError(
            f"whether {len(lower)} clauses cover another one isn't known after {BUDGET} steps",
            hint="use a simpler predicate, or match by a heuristic",
        )
    return answer == COVERED

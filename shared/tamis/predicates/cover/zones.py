"""Zones: covering of boxes that compare attributes, by differences of difference-bound matrices.

Every type has finitely many values, which are numbered in their order. So each condition of a box has the
form `x - y <= k`, where x and y are such numbers or 0. A *zone* is the set of tuples that satisfy such
bounds. If all bounds that follow from others are computed (all shortest paths), they show whether the zone is
empty. The part of a zone outside another zone is cut off bound by bound, as the split algorithm does with
boxes. This is exact.

A rounded value, such as `b + 3` for a DOUBLE b, gets a variable of its own. The zone only knows that this
variable grows with b, because rounding is monotone, and with the offset. So if zones show that a box is
covered, this is proved. If they don't, the uncovered zone may contain no real tuple; then `witness` looks for
one.

A linear form such as `x + y` is a variable of its own, too. `linear_ranges` first narrows its range to what
its attributes and the other forms leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.errors import RefusedError
from tamis.predicates.boxes import Box, inside, intersect, overlap
from tamis.predicates.cover.linear_ranges import forms, narrowed
from tamis.predicates.cover.witness import outside
from tamis.predicates.cover.zone_variables import Bound, Matrix, ZoneVariables, differences
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.ranges import ANYTHING, IS_NULL, NOT_NULL, NULL

# The most zones and choices of NULLs that are tried: some seconds.
BUDGET = 50_000


class _StepBudget:
    """The steps that are left for all parts of a box."""

    def __init__(self, clauses: int) -> None:
        self._clauses, self._left = clauses, BUDGET

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise RefusedError(
                f"whether {self._clauses} clauses cover another one isn't known after {BUDGET} steps",
                hint="use a simpler predicate, with fewer comparisons of attributes and different offsets",
            )


def compares(box: Box) -> bool:
    """True if the box compares attributes."""
    return any(isinstance(name, ComputedDimension) for name in box)


def _compared(box: Box) -> set[str]:
    """The attributes that the box compares."""
    return {name for made in box if isinstance(made, ComputedDimension) for name in made.attributes}


def narrowed_box(box: Box, by: Sequence[Box]) -> Box | None:
    """The box with ranges narrowed by its linear forms (`linear_ranges`); None if no tuple is in it."""
    whole = _with_differences_known(box)
    return None if whole is None else narrowed(whole, by)


def zones_cover(box: Box, by: Sequence[Box], *, refute: bool = True) -> bool:
    """True if the union of `by` contains all of `box`.

    Raises `RefusedError` if the answer isn't found within `BUDGET` zones, or depends on the rounding of a
    DOUBLE. Without `refute` the answer is False in the second case.
    """
    whole = _with_differences_known(box)
    if whole is None:
        return True
    parts = [
        (
            whole,
            [one for other in by if (one := _with_differences_known(other)) is not None],
        )
    ]
    budget = _StepBudget(len(by))
    while parts:
        part, others = parts.pop()
        budget.spend(1)
        others = [other for other in others if overlap(part, other)]
        if any(inside(part, other) for other in others):
            continue
        # NULL of an attribute matters only while some box compares the attribute.
        compared = set[str]().union(*map(_compared, (part, *others)))
        undecided = [
            end for end in compared if part.get(end, ANYTHING)[0] == NULL and part.get(end) != IS_NULL
        ]
        if undecided:
            halves = (intersect(part, {min(undecided): side}) for side in (NOT_NULL, IS_NULL))
            parts += [(half, others) for half in halves if half is not None]
        elif not _part_covered(part, others, compared, budget, refute):
            return False
    return True


def possible_zone(box: Box) -> bool:
    """True if a tuple may satisfy the box; False is proved."""
    within = narrowed_box(box, ())
    if within is None:
        return False
    if not any(differences(within)):
        return True
    return ZoneVariables([within], frozenset(_compared(within))).zone(within) is not None


def _with_differences_known(box: Box) -> Box | None:
    """The box where compared attributes aren't NULL; None if it is empty."""
    return intersect(box, dict.fromkeys(_compared(box), NOT_NULL))


def _part_covered(box: Box, by: Sequence[Box], compared: set[str], budget: _StepBudget, refute: bool) -> bool:
    """The answer for a box that overlaps all of `by`, where each compared attribute is either always NULL or
    never.
    """
    numeric = frozenset(name for name in compared if box.get(name, ANYTHING) != IS_NULL)
    if not by and not compares(box):
        return False
    within = narrowed(box, by)
    if within is None or any(inside(within, other) for other in by):
        return True
    variables = ZoneVariables([within, *by], numeric)
    zone = variables.zone(within)
    if zone is None or _covered(zone, [variables.bounds(other) for other in by], variables, budget):
        return True
    linear = forms((box, *by))
    if not (variables.terms or linear) or not refute or outside(box, by, numeric) is not None:
        return False
    if linear:
        raise RefusedError(
            "whether one predicate implies the other isn't known for these sums of attributes",
            hint="use fewer comparisons of sums, or compare them with other constants",
        )
    raise RefusedError(
        "whether one predicate implies the other depends on how sums of DOUBLEs are rounded",
        hint="compare attributes without offsets, or whole numbers",
    )


def _covered(zone: Matrix, by: list[list[Bound]], variables: ZoneVariables, budget: _StepBudget) -> bool:
    stack = [(zone, by)]
    # Bounds are tightened along all paths, and all pairs of offsets of DOUBLEs are compared.
    cost = 1 + len(zone) ** 2 // 100 + len(variables.terms) ** 2
    while stack:
        part, known = stack.pop()
        budget.spend(cost)
        known = [bounds for bounds in known if not any(part[j][i] + k < 0 for i, j, k in bounds)]
        if any(all(part[i][j] <= k for i, j, k in bounds) for bounds in known):
            continue
        while known:
            rests = _cut_off(part, known.pop(), variables)
            if rests is not None:
                stack += [(rest, list(known)) for rest in rests]
                break
        else:
            return False
    return True


def _cut_off(zone: Matrix, bounds: list[Bound], variables: ZoneVariables) -> list[Matrix] | None:
    """The disjoint parts of a zone that violate the first of some bounds, only the second, and so on; None if
    they are all of it.
    """
    out: list[Matrix] = []
    inside: Matrix | None = zone
    for i, j, k in bounds:
        assert inside is not None
        broken = variables.tightened(inside, (j, i, -k - 1))
        if broken is not None:
            out.append(broken)
        inside = variables.tightened(inside, (i, j, k))
        if inside is None:
            return None
    return out

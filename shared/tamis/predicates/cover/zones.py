"""Is a box covered where boxes compare attributes, too? Differences of difference-bound matrices.

Every type has finitely many values, each with a number in their order: so all conditions of a box, those on
differences too, bound the difference of two whole numbers, `x - y <= k`, one of them perhaps 0. A *zone* is
what satisfies such bounds; tightened along all paths it shows whether it is empty. What a zone has outside
of another is cut off bound by bound, as the split algorithm does with boxes, and that is exact.

What DOUBLEs are rounded to, `b + 3` or the greatest a with `a - b <= 2`, is a number of its own, which grows
with b (rounding is monotone) and with the offset. That is all that a zone knows of it, so that a yes is
proved, but a zone that isn't covered may have no tuple in it: see `witness`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.errors import RefusedError
from tamis.predicates.boxes import Box, inside, meet, meets
from tamis.predicates.cover.numbers import Bound, Matrix, Numbers, differences
from tamis.predicates.cover.witness import outside
from tamis.predicates.differences import Difference
from tamis.predicates.ranges import ANYTHING, IS_NULL, NOT_NULL, NULL

# Zones and choices of what is NULL that are looked at before giving up: some seconds.
BUDGET = 50_000


class _Patience:
    """What is left of the budget, for all parts of a box."""

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
    """Whether the box compares attributes."""
    return any(isinstance(name, Difference) for name in box)


def zones_cover(box: Box, by: Sequence[Box]) -> bool:
    """Whether the union of `by` holds all of `box`. Raises `RefusedError` where it isn't found within
    `BUDGET` zones, or hangs on how a DOUBLE is rounded.
    """
    whole = _with_differences_known(box)
    if whole is None:
        return True
    parts = [(whole, [known for other in by if (known := _with_differences_known(other)) is not None])]
    patience = _Patience(len(by))
    while parts:
        part, others = parts.pop()
        patience.spend(1)
        others = [other for other in others if meets(part, other)]
        if any(inside(part, other) for other in others):
            continue
        # Whether an attribute is NULL matters only while something that compares it is left.
        compared = {end for one in (part, *others) for d in differences(one) for end in (d.left, d.right)}
        undecided = [
            end for end in compared if part.get(end, ANYTHING)[0] == NULL and part.get(end) != IS_NULL
        ]
        if undecided:
            halves = (meet(part, {min(undecided): side}) for side in (NOT_NULL, IS_NULL))
            parts += [(half, others) for half in halves if half is not None]
        elif not _part_covered(part, others, compared, patience):
            return False
    return True


def possible_zone(box: Box) -> bool:
    """Whether a tuple may satisfy the box; False is proved."""
    whole = _with_differences_known(box)
    if whole is None:
        return False
    numbers = Numbers([whole], frozenset(end for d in differences(whole) for end in (d.left, d.right)))
    return numbers.zone(whole) is not None


def _with_differences_known(box: Box) -> Box | None:
    """What is compared isn't NULL."""
    known: Box | None = box
    for d in differences(box):
        known = meet(known, {d.left: NOT_NULL, d.right: NOT_NULL}) if known is not None else None
    return known


def _part_covered(box: Box, by: Sequence[Box], compared: set[str], patience: _Patience) -> bool:
    """The same of a box that meets all of `by`; each attribute that is compared is NULL in it, or isn't."""
    numeric = frozenset(name for name in compared if box.get(name, ANYTHING) != IS_NULL)
    if not by and not compares(box):
        return False
    numbers = Numbers([box, *by], numeric)
    zone = numbers.zone(box)
    if zone is None or _covered(zone, [numbers.bounds(other) for other in by], numbers, patience):
        return True
    if not numbers.terms or outside(box, by, numeric) is not None:
        return False
    raise RefusedError(
        "whether the one predicate implies the other hangs on how sums of DOUBLEs are rounded",
        hint="compare attributes without offsets, or whole numbers",
    )


def _covered(zone: Matrix, by: list[list[Bound]], numbers: Numbers, patience: _Patience) -> bool:
    stack = [(zone, by)]
    # Bounds are tightened along all paths, and every two offsets of DOUBLEs are held against each other.
    cost = 1 + len(zone) ** 2 // 100 + len(numbers.terms) ** 2
    while stack:
        part, known = stack.pop()
        patience.spend(cost)
        known = [bounds for bounds in known if not any(part[j][i] + k < 0 for i, j, k in bounds)]
        if any(all(part[i][j] <= k for i, j, k in bounds) for bounds in known):
            continue
        while known:
            rests = _cut_off(part, known.pop(), numbers)
            if rests is not None:
                stack += [(rest, list(known)) for rest in rests]
                break
        else:
            return False
    return True


def _cut_off(zone: Matrix, bounds: list[Bound], numbers: Numbers) -> list[Matrix] | None:
    """The disjoint parts of a zone that break the first of some bounds, only the second, and so on; None if
    that is all of it.
    """
    out: list[Matrix] = []
    inside: Matrix | None = zone
    for i, j, k in bounds:
        assert inside is not None
        broken = numbers.tightened(inside, (j, i, -k - 1))
        if broken is not None:
            out.append(broken)
        inside = numbers.tightened(inside, (i, j, k))
        if inside is None:
            return None
    return out

"""Boxes: conjunctions of ranges of attributes and differences, with exact set operations on lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tamis.predicates.differences import Difference, Form
from tamis.predicates.ranges import ANYTHING, NOT_NULL, Range

Box = Mapping[str, Range]
"""A conjunction of ranges by attribute or `Difference`. A missing attribute may have any value, NULL too. No
range is empty.
"""

# The most boxes that are compared in pairs, and the most boxes times the square of dimensions that are
# merged:
# both take some tens of milliseconds.
MOST_COMPARED = 300
MOST_MERGED = 100_000

EVERYTHING: Box = MappingProxyType({})


def intersect(one: Box, other: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    out = dict(one)
    for name, found in other.items():
        mine = out.get(name, ANYTHING)
        lower, upper = max(found[0], mine[0]), min(found[1], mine[1])
        if lower >= upper:
            return None
        out[name] = (lower, upper)
    return out


def overlap(one: Box, other: Box) -> bool:
    """True if some tuple is in both boxes."""
    for name, (lower, upper) in other.items():
        mine = one.get(name, ANYTHING)
        if mine[0] >= upper or lower >= mine[1]:
            return False
    return True


def inside(inner: Box, outer: Box) -> bool:
    """True if `outer` contains all of `inner`.

    A missing attribute of `inner` is unbounded there. Algorithms 8 and 9 of kuntschke-2006 compare only
    attributes that both boxes have, and so find implications that don't hold.
    """
    for name, (lower, upper) in outer.items():
        mine = inner.get(name, ANYTHING)
        if mine[0] < lower or mine[1] > upper:
            return False
    return True


def trimmed(box: Box) -> Box:
    """Drop the attributes of a box that may have any value.

    A difference that may have any value only says that neither of its attributes is NULL. So two conditions
    IS NOT NULL replace it.
    """
    out = {name: found for name, found in box.items() if found != ANYTHING}
    for name, found in box.items():
        if found == NOT_NULL and isinstance(name, Difference) and name.form is not Form.ROUNDED:
            less = {other: mine for other, mine in out.items() if other != name}
            both = intersect(less, {name.left: NOT_NULL, name.right: NOT_NULL})
            out = out if both is None else dict(both)
    return out


def merged(boxes: Iterable[Box]) -> list[Box]:
    """Merge boxes that touch, without changing the union of all boxes.

    Two boxes that differ in one attribute, and whose ranges of it touch, become one. This is repeated until
    nothing changes. Then boxes inside other boxes are dropped. If there are very many boxes, a step may be
    skipped, and more boxes remain.
    """
    found = [trimmed(box) for box in boxes]
    if len(found) <= 1:
        return found
    names = sorted({name for box in found for name in box})
    before = -1
    while before != len(found) and len(found) * len(names) ** 2 <= MOST_MERGED:
        before = len(found)
        for name in names:
            found = _merged_along(name, found)
    if len(found) > MOST_COMPARED:
        return found
    return [
        box
        for at, box in enumerate(found)
        if not any(inside(box, other) for other in (*found[:at], *found[at + 1 :]) if other != box)
    ]


def _merged_along(name: str, boxes: list[Box]) -> list[Box]:
    """Merge boxes that differ only in one attribute, where their ranges touch."""
    groups: dict[frozenset[tuple[str, Range]], list[Range]] = {}
    for box in boxes:
        rest = frozenset((other, found) for other, found in box.items() if other != name)
        groups.setdefault(rest, []).append(box.get(name, ANYTHING))
    out: list[Box] = []
    for rest, ranges in groups.items():
        union: list[Range] = []
        for lower, upper in sorted(ranges):
            if union and lower <= union[-1][1]:
                union[-1] = (union[-1][0], max(upper, union[-1][1]))
            else:
                union.append((lower, upper))
        out += [trimmed({**dict(rest), name: found}) for found in union]
    return out

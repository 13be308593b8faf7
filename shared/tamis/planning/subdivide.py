"""Proofs over a whole box from enclosures over its parts: interval arithmetic with subdivision.

The effort is counted in boxes, not in time, so that a proof is found on every machine or on none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from tamis.expressions.nodes import Column, Expr
from tamis.planning import intervals as iv
from tamis.planning.intervals import Interval
from tamis.planning.jets import Box, Jet, UndefinedError, jet
from tamis.planning.shapes import Shape, closed

MOST_BOXES = 1_500  # for one statement about one expression: some 0.1 s
ALL_BOXES = 12_000  # for one certificate
_POINTS = 24  # places at which a statement is first tried, before boxes are spent on proving it


@dataclass
class Effort:
    """What is left of the boxes that one certificate may take."""

    left: int = ALL_BOXES
    used: bool = False


def enclose(expr: Expr, box: Box, variable: Column, effort: Effort) -> Jet:
    """The jet of an expression that has no enclosure over the whole box, from those of its parts.

    Raises UndefinedError where it may be NULL, or the effort does not suffice to show that it is not.
    """
    parts: list[Jet] = []

    def keep(part: Jet) -> bool:
        parts.append(part)
        return True

    if not _cover(expr, box, variable, effort, keep):
        jet(expr, box, variable)  # says what may be NULL
        raise UndefinedError(expr, "may be NULL")
    return Jet(
        iv.hull(*(p.value for p in parts)),
        iv.hull(*(p.first for p in parts)),
        iv.hull(*(p.second for p in parts)),
        True,
        all(p.sure for p in parts),
    )


def slopes(expr: Expr, box: Box, variable: Column, effort: Effort, known: Shape) -> Shape:
    """What the signs of the first and the second derivative prove of `expr` beyond what is `known`."""
    tests: dict[Shape, Callable[[Jet], bool]] = {
        Shape.RISING: lambda j: j.first.lo >= 0,
        Shape.FALLING: lambda j: j.first.hi <= 0,
        Shape.CONVEX: lambda j: j.second.lo >= 0,
        Shape.CONCAVE: lambda j: j.second.hi <= 0,
    }
    found = Shape.NONE
    for shape in _possible(expr, box, variable):
        if shape in known:
            continue
        effort.used = True
        if _cover(expr, box, variable, effort, tests[shape]):
            found |= shape
            if shape in Shape.RISING | Shape.FALLING:
                break  # nothing says more
    return closed(found)


def _possible(expr: Expr, box: Box, variable: Column) -> list[Shape]:
    """The statements that no tried place disproves."""
    rng = random.Random(0)  # the same places every time, so that a verdict is repeatable
    left = [Shape.RISING, Shape.FALLING, Shape.CONVEX, Shape.CONCAVE]
    for _ in range(_POINTS):
        place = {column: iv.point(_inside(span, rng)) for column, span in box.items()}
        try:
            at = jet(expr, place, variable)
        except UndefinedError:
            continue
        wrong = {
            Shape.RISING: at.first.hi < 0,
            Shape.FALLING: at.first.lo > 0,
            Shape.CONVEX: at.second.hi < 0,
            Shape.CONCAVE: at.second.lo > 0,
        }
        left = [shape for shape in left if not wrong[shape]]
    return left


def _inside(span: Interval, rng: random.Random) -> float:
    lo, hi = max(span.lo, -iv.MAX / 4), min(span.hi, iv.MAX / 4)
    return min(max(lo + rng.random() * (hi - lo), lo), hi)


def _cover(
    expr: Expr,
    box: Box,
    variable: Column,
    effort: Effort,
    test: Callable[[Jet], bool],
) -> bool:
    """Does `test` hold of the jets over parts that together cover the box? False where effort runs out."""
    stack: list[Box] = [box]
    most = MOST_BOXES
    names = sorted(box, key=lambda c: (c.alias, c.name))
    while stack:
        if most == 0 or effort.left == 0:
            return False
        most -= 1
        effort.left -= 1
        part = stack.pop()
        try:
            if test(jet(expr, part, variable)):
                continue
        except UndefinedError:
            pass
        halves = _split(part, box, names)
        if halves is None:
            return False
        stack += halves
    return True


def _split(part: Box, whole: Box, names: list[Column]) -> tuple[Box, Box] | None:
    """Two halves along the side that is longest relative to the whole box; None if nothing can be."""

    def length(column: Column) -> float:
        full = whole[column].width
        return part[column].width / full if 0 < full < math.inf else float(part[column].width > 0)

    widest = max(names, key=length, default=None)
    if widest is None or length(widest) == 0:
        return None
    span = part[widest]
    at = _middle(span)
    if not span.lo < at < span.hi:
        return None
    return {**part, widest: Interval(span.lo, at)}, {**part, widest: Interval(at, span.hi)}


def _middle(span: Interval) -> float:
    """Where to split: at 0 or geometrically where the ends are of very different size, else half-way."""
    if span.magnitude > 1e6:
        if span.lo < 0 < span.hi:
            return 0.0
        near, far = sorted((abs(span.lo), abs(span.hi)))
        if far > 1e3 * max(near, 1e-3):
            return math.copysign(math.sqrt(max(near, 1e-3)) * math.sqrt(far), span.lo or span.hi)
    return span.lo / 2 + span.hi / 2

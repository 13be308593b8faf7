"""Proofs over a whole box from enclosures over its parts: interval arithmetic with subdivision.

The effort is counted in operators times boxes, not in time, so that a proof is found on every machine or
on none. Enclosures are inclusion-monotone: what fails at a single point fails over every box around it, so
that a statement is tried at points before any box is spent on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tamis.expressions.nodes import Call, Column, Expr, Type
from tamis.planning import intervals as iv
from tamis.planning.intervals import Interval, Mask
from tamis.planning.jets import Box, Doubt, Jet, UndefinedError, jet
from tamis.planning.shapes import Shape, closed

# One unit is one operator over one box, some 2 µs on a slow core.
MOST_WORK = 250_000  # for one statement about one expression
ALL_WORK = 750_000  # for one certificate: no more than about 2 s
_BARREN = 12  # rounds, each of twice the boxes, after which some box at least must have been proved
_ROUND = 40  # boxes that the fixed cost of one round of subdivision is worth
_PLACES = 120  # random places at which a statement is first tried

Test = Callable[[Jet], Mask]


@dataclass
class Effort:
    """What is left of the work that one certificate may take."""

    left: int = ALL_WORK
    used: bool = False


def whole(expr: Expr, box: Box, variable: Column, *, strict: bool = False) -> Jet:
    """The jet over one box. Raises UndefinedError where a part may be NULL."""
    doubt = Doubt()
    out = jet(expr, box, variable, doubt, strict=strict)
    doubt.check()
    return out


def enclose(expr: Expr, box: Box, variable: Column, effort: Effort) -> Jet:
    """The jet of an expression that has no enclosure over the whole box, from those of its parts.

    Raises UndefinedError where it may be NULL, or the effort does not suffice to show that it is not.
    """
    effort.used = True
    doubt = Doubt()
    jet(expr, places(box), variable, doubt)
    doubt.check()
    parts: list[Jet] = []

    def keep(part: Jet) -> Mask:
        parts.append(part)
        return np.ones((), np.bool_)

    if not _cover(expr, box, variable, effort, keep):
        whole(expr, box, variable)  # says what may be NULL
        raise UndefinedError(expr, "may be NULL")
    return replace(
        parts[0],
        value=_joined([p.value for p in parts]),
        first=_joined([p.first for p in parts]),
        second=_joined([p.second for p in parts]),
    )


def _joined(parts: list[Interval]) -> Interval:
    return iv.span(min(float(np.min(p.lo)) for p in parts), max(float(np.max(p.hi)) for p in parts))


def _bends_nowhere(j: Jet) -> Mask:
    """Smooth, and without a place where it is level: a bend has no second derivative (see `jets`)."""
    smooth = np.isfinite(j.second.lo) & np.isfinite(j.second.hi)
    return ((j.first.lo > 0) | (j.first.hi < 0)) & smooth


# The greatest value between two lower ones is attained last at some place, where the first derivative is 0
# or there is a bend; to the right of it the number falls, which a second derivative >= 0 rules out.
_TESTS: dict[Shape, Test] = {
    Shape.RISING: lambda j: j.first.lo >= 0,
    Shape.FALLING: lambda j: j.first.hi <= 0,
    Shape.CONVEX: lambda j: j.second.lo >= 0,
    Shape.CONCAVE: lambda j: j.second.hi <= 0,
    Shape.QUASICONVEX: lambda j: _bends_nowhere(j) | (j.second.lo >= 0),
    Shape.QUASICONCAVE: lambda j: _bends_nowhere(j) | (j.second.hi <= 0),
}
# The same of a number that matters by its sign alone: a ray is left only through a zero, and values on the
# one side of zero may go up and down as they like.
_AT_ZERO: dict[Shape, Test] = {
    Shape.RISING: lambda j: ~j.value.holds(0.0) | (j.first.lo >= 0),
    Shape.FALLING: lambda j: ~j.value.holds(0.0) | (j.first.hi <= 0),
    Shape.QUASICONVEX: lambda j: (j.value.hi < 0) | _TESTS[Shape.QUASICONVEX](j),
    Shape.QUASICONCAVE: lambda j: (j.value.lo > 0) | _TESTS[Shape.QUASICONCAVE](j),
}
_RAYS = Shape.RISING | Shape.FALLING


def slopes(expr: Expr, box: Box, variable: Column, effort: Effort, *, at_zero: bool = False) -> Shape:
    """What the signs of the first and the second derivative prove of `expr`, which then is nowhere NULL,
    either. With `at_zero`, what they prove of the sets where it is above, below or at 0, in the same words.
    """
    tests = _AT_ZERO if at_zero else _TESTS
    points = places(box)
    doubt = Doubt()
    there = jet(expr, points, variable, doubt)
    found = Shape.NONE
    for shape, test in tests.items():
        if shape in closed(found) or not np.all(test(there) & ~doubt.boxes):
            continue
        effort.used = True
        if _cover(expr, box, variable, effort, test):
            found |= shape
            if shape in _RAYS:
                break  # nothing says more
    return closed(found)


def never_negative(expr: Expr, box: Box, effort: Effort) -> bool:
    """Is `expr`, where it is not NULL, at least 0 over the whole box?"""
    nowhere = Column("", "", Type.DOUBLE)

    def test(j: Jet) -> Mask:
        return j.value.lo >= 0

    if not np.all(test(jet(expr, places(box), nowhere, Doubt()))):
        return False
    effort.used = effort.used or bool(box)
    return _cover(expr, box, nowhere, effort, test)


def places(box: Box) -> Box:
    """Points of the box, corners and zeros among them; the same ones every time, so that a verdict is
    repeatable.
    """
    rng = np.random.default_rng(0)
    out = {}
    for column in sorted(box, key=lambda c: (c.alias, c.name)):
        side = box[column]
        lo, hi = float(side.lo), float(side.hi)
        share = rng.random(_PLACES)
        at = np.clip(lo * (1 - share) + hi * share, lo, hi)
        ends = rng.choice([lo, hi, min(max(0.0, lo), hi)], size=_PLACES)
        at = np.where(rng.random(_PLACES) < 0.4, ends, at)
        out[column] = Interval(at, at)
    return out


def _cover(expr: Expr, box: Box, variable: Column, effort: Effort, test: Test) -> bool:
    """Does `test` hold of the jets over parts that cover the box? False where the effort runs out."""
    names = sorted(box, key=lambda c: (c.alias, c.name))
    lows = np.array([[float(box[c].lo) for c in names]]).reshape(1, len(names))
    highs = np.array([[float(box[c].hi) for c in names]]).reshape(1, len(names))
    size = np.maximum(highs[0] / 2 - lows[0] / 2, np.finfo(float).tiny)
    most, operators, barren = MOST_WORK, _operators(expr), 0
    while len(lows):
        work = (len(lows) + _ROUND) * operators
        if work > min(most, effort.left):
            return False
        most -= work
        effort.left -= work
        parts = {c: Interval(lows[:, i], highs[:, i]) for i, c in enumerate(names)}
        doubt = Doubt()
        found = jet(expr, parts, variable, doubt)
        proved = test(found) & ~doubt.boxes
        rest = np.flatnonzero(~np.broadcast_to(proved, (len(lows),)))
        if not len(rest):
            return True
        barren = barren + 1 if len(rest) == len(lows) else 0
        if not names or barren > _BARREN:
            return False
        lows, highs = lows[rest], highs[rest]
        rows = np.arange(len(rest))
        # The side that is longest, as a share of the whole box's.
        side = np.argmax((highs / 2 - lows / 2) / size, axis=1)
        lo, hi = lows[rows, side], highs[rows, side]
        at = _middle(lo, hi)
        if np.any((at <= lo) | (at >= hi)):
            return False  # as small as numbers are
        lower, upper = highs.copy(), lows.copy()
        lower[rows, side] = at
        upper[rows, side] = at
        lows, highs = np.concatenate([lows, upper]), np.concatenate([lower, highs])
    return True


def _operators(expr: Expr) -> int:
    return 1 + sum(_operators(arg) for arg in expr.args) if isinstance(expr, Call) else 1


def _middle(lo: iv.Array, hi: iv.Array) -> iv.Array:
    """Where to split: at 0 or geometrically where the ends are of very different size, else half-way."""
    near = np.maximum(np.minimum(np.abs(lo), np.abs(hi)), 1e-3)
    far = np.maximum(np.abs(lo), np.abs(hi))
    with np.errstate(over="ignore"):  # ends that are both as large as can be aren't split
        geometric = np.copysign(np.sqrt(near) * np.sqrt(far), np.where(lo < 0, -1.0, 1.0))
    crossing = (lo < 0) & (hi > 0)
    wide = np.where(crossing, 0.0, np.where(far / 1e3 > near, geometric, lo / 2 + hi / 2))
    return np.where(far > 1e6, wide, lo / 2 + hi / 2)

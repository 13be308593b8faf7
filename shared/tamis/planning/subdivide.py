"""Proofs over a whole box from enclosures over its parts: interval arithmetic with subdivision.

The effort is counted in boxes, not in time, so that a proof is found on every machine or on none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tamis.expressions.nodes import Column, Expr
from tamis.planning import intervals as iv
from tamis.planning.intervals import Interval, Mask
from tamis.planning.jets import Box, Doubt, Jet, UndefinedError, jet
from tamis.planning.shapes import Shape, closed

MOST_BOXES = 20_000  # for one statement about one expression: some 0.1 s
ALL_BOXES = 120_000  # for one certificate
_PLACES = 200  # places at which a statement is first tried, before boxes are spent on proving it

Test = Callable[[Jet], Mask]


@dataclass
class Effort:
    """What is left of the boxes that one certificate may take."""

    left: int = ALL_BOXES
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


_TESTS: dict[Shape, Test] = {
    Shape.RISING: lambda j: j.first.lo >= 0,
    Shape.FALLING: lambda j: j.first.hi <= 0,
    Shape.CONVEX: lambda j: j.second.lo >= 0,
    Shape.CONCAVE: lambda j: j.second.hi <= 0,
}
_AGAINST: dict[Shape, Test] = {
    Shape.RISING: lambda j: j.first.hi < 0,
    Shape.FALLING: lambda j: j.first.lo > 0,
    Shape.CONVEX: lambda j: j.second.hi < 0,
    Shape.CONCAVE: lambda j: j.second.lo > 0,
}


def slopes(expr: Expr, box: Box, variable: Column, effort: Effort) -> Shape:
    """What the signs of the first and the second derivative prove of `expr`, which then is nowhere NULL,
    either.
    """
    places = _at_random(box)
    doubt = Doubt()
    there = jet(expr, places, variable, doubt)
    found = Shape.NONE
    for shape, test in _TESTS.items():
        if np.any(_AGAINST[shape](there) & ~doubt.boxes):
            continue
        effort.used = True
        if _cover(expr, box, variable, effort, test):
            found |= shape
            if shape in Shape.RISING | Shape.FALLING:
                break  # nothing says more
    return closed(found)


def _at_random(box: Box) -> Box:
    """Points of the box; the same ones every time, so that a verdict is repeatable."""
    rng = np.random.default_rng(0)
    out = {}
    for column in sorted(box, key=lambda c: (c.alias, c.name)):
        side = box[column]
        share = rng.random(_PLACES)
        at = np.clip(side.lo * (1 - share) + side.hi * share, side.lo, side.hi)
        out[column] = Interval(at, at)
    return out


def _cover(expr: Expr, box: Box, variable: Column, effort: Effort, test: Test) -> bool:
    """Does `test` hold of the jets over parts that cover the box? False where the effort runs out."""
    names = sorted(box, key=lambda c: (c.alias, c.name))
    lows = np.array([[float(box[c].lo) for c in names]]).reshape(1, len(names))
    highs = np.array([[float(box[c].hi) for c in names]]).reshape(1, len(names))
    size = np.maximum(highs[0] / 2 - lows[0] / 2, np.finfo(float).tiny)
    most = MOST_BOXES
    while len(lows):
        if len(lows) > min(most, effort.left):
            return False
        most -= len(lows)
        effort.left -= len(lows)
        parts = {c: Interval(lows[:, i], highs[:, i]) for i, c in enumerate(names)}
        doubt = Doubt()
        found = jet(expr, parts, variable, doubt)
        proved = test(found) & ~doubt.boxes
        rest = np.flatnonzero(~np.broadcast_to(proved, (len(lows),)))
        if not len(rest):
            return True
        if not names:
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


def _middle(lo: iv.Array, hi: iv.Array) -> iv.Array:
    """Where to split: at 0 or geometrically where the ends are of very different size, else half-way."""
    near = np.maximum(np.minimum(np.abs(lo), np.abs(hi)), 1e-3)
    far = np.maximum(np.abs(lo), np.abs(hi))
    with np.errstate(over="ignore"):  # ends that are both as large as can be aren't split
        geometric = np.copysign(np.sqrt(near) * np.sqrt(far), np.where(lo < 0, -1.0, 1.0))
    crossing = (lo < 0) & (hi > 0)
    wide = np.where(crossing, 0.0, np.where(far / 1e3 > near, geometric, lo / 2 + hi / 2))
    return np.where(far > 1e6, wide, lo / 2 + hi / 2)

"""Filters of thousands of entries, and which of them may lie in which: told from the hulls of their boxes, in
columns, before any two are compared exactly (the quick check of kuntschke-2006, section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.planning.common import Bools
from tamis.planning.remembered import MOST, Remembered
from tamis.predicates import Predicate
from tamis.predicates.boxes import Box
from tamis.predicates.cover.zones import compares
from tamis.predicates.ranges import HIGH, Cut

# Clauses of a filter: with as many on both sides a comparison takes milliseconds.
MOST_CLAUSES = 50


@dataclass(frozen=True)
class Shape:
    """A filter as boxes, and their hull in the attributes that all of them limit. `plain`: there are boxes,
    and no attributes are compared with each other.
    """

    boxes: Predicate
    hull: Box
    plain: bool


_SHAPES = Remembered[Shape | None](MOST)


def shape(filter_: Expr) -> Shape | None:
    """The filter as boxes; None where it isn't one of them, or one of too many to compare in passing."""

    def make() -> Shape | None:
        try:
            found = Predicate.of(filter_, budget=MOST_CLAUSES)
        except RefusedError:
            return None
        plain = bool(found.boxes) and not any(map(compares, found.boxes))
        return Shape(found, _hull(found.boxes), plain)

    return _SHAPES.one(filter_, make)


def _hull(found: tuple[Box, ...]) -> Box:
    """The least box around some; of none at all, one around everything."""
    return {
        name: (min(box[name][0] for box in found), max(box[name][1] for box in found))
        for name in (found[0] if found else ())
        if all(name in box for box in found)
    }


def possible(inner: Sequence[Expr | None], outer: Sequence[Expr | None]) -> Bools:
    """Where a filter of `inner` may lie in one of `outer`: of shape (inner, outer), False is certain."""
    parts = [None if filter_ is None else shape(filter_) for filter_ in (*inner, *outer)]
    hulls = [one.hull if one is not None and one.plain else None for one in parts]
    found = np.ones((len(inner), len(outer)), np.bool_)
    for name in {name for hull in hulls if hull is not None for name in hull}:
        ends = [hull.get(name) if hull is not None else None for hull in hulls]
        if any(isinstance(cut[-1], str) for pair in ends if pair for cut in pair):
            continue  # texts are few, and compared exactly
        lower = np.array([-math.inf if pair is None else _number(pair[0]) for pair in ends])
        upper = np.array([math.inf if pair is None else _number(pair[1]) for pair in ends])
        # What isn't known to be a hull is taken for nothing as an inner one, and for everything as an outer.
        known = np.array([hull is not None for hull in hulls[: len(inner)]], np.bool_)
        n = len(inner)
        beyond = (lower[:n, None] < lower[None, n:]) | (upper[:n, None] > upper[None, n:])
        found &= ~(beyond & known[:, None])
    return found


def _number(cut: Cut) -> float:
    """A number that isn't greater than that of any greater cut."""
    if len(cut) == 1:
        return math.inf if cut == HIGH else -math.inf
    return float(cut[1])

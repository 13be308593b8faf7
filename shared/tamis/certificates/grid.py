"""The grid check of cai-2021, section 5: a condition tried at the points of a discretised domain.

This is no proof, because a change between two neighbouring points isn't seen. The grid is only used if an
alert asks for it with `certify = 'heuristic'`.

As in the paper, a threshold function that is a sum is split into its terms. The grid then only has the
columns of the terms that contain the scalar: the other terms are constant in the scalar and don't change the
result. A condition of another form is tried as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tamis.certificates.curvature import level_sets
from tamis.certificates.curvature import properties as rules
from tamis.certificates.curvature.level_sets import Region
from tamis.certificates.curvature.properties import Curvature
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.scalars import added, constant, scaled, terms
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns
from tamis.expressions.vectors import Columns, Vector

POINTS = 400_000  # some milliseconds an operator
FEWEST = 8  # steps of each column: fewer show nothing
DECLARED = 1e15  # larger ends are those of a type: nobody declares them for a quantity

Cells = NDArray[np.bool_]


class NoGridError(Exception):
    """There is no grid; the text is the reason."""


def gridded(condition: Expr, variable: Column, box: Mapping[Column, Interval]) -> tuple[Region, int]:
    """The region where `condition` is true, as far as a grid shows, and the number of points.

    Raises NoGridError if a domain isn't declared, or there are too many columns.
    """
    if isinstance(condition, Call) and condition.op in (">", ">=", "<", "<="):
        left, right = condition.args
        if left.type.numeric and right.type.numeric:
            parts = [*terms(left), *((-factor, term) for factor, term in terms(right))]
            moving = [scaled(factor, term) for factor, term in parts if variable in columns(term)]
            others = [term for _, term in parts if variable not in columns(term) and constant(term) is None]
            if others:
                curvature, count = _curvature(added(moving), variable, box)
                return level_sets.superlevel_set(
                    curvature if condition.op[0] == ">" else rules.negated(curvature)
                ), count
    rows, shape_of = _grid(condition, variable, box)
    alarm = holds(condition, rows, math.prod(shape_of)).reshape(shape_of)
    out = Region.NONE
    if np.all(alarm[:, :-1] <= alarm[:, 1:]):
        out |= Region.UPWARD
    if np.all(alarm[:, :-1] >= alarm[:, 1:]):
        out |= Region.DOWNWARD
    if not np.any(alarm & _any_up_to(~alarm) & _any_up_to(~alarm[:, ::-1])[:, ::-1]):
        out |= Region.OUTSIDE
    return level_sets.closed(out), alarm.size


def _any_up_to(cells: Cells) -> Cells:
    """For each place, True if the place itself or a place to its left is true."""
    found: Cells = np.logical_or.accumulate(cells, axis=1)
    return found


def _curvature(expr: Expr, variable: Column, box: Mapping[Column, Interval]) -> tuple[Curvature, int]:
    """The curvature of a number along the variable, for all values of the rest on the grid."""
    rows, shape_of = _grid(expr, variable, box)
    vector = evaluate(expr, rows, math.prod(shape_of))
    value = np.asarray(vector.data, np.float64).reshape(shape_of)
    if vector.null is not None and np.any(vector.null):
        raise NoGridError("the value is NULL at some points of the grid; declare CHECKs that exclude them")
    steps = np.diff(value, axis=1)
    out = Curvature.NONE
    if np.all(steps >= 0):
        out |= Curvature.RISING
    if np.all(steps <= 0):
        out |= Curvature.FALLING
    if not np.any(_any_up_to(steps > 0) & (steps < 0)):
        out |= Curvature.QUASICONVEX
    if not np.any(_any_up_to(steps < 0) & (steps > 0)):
        out |= Curvature.QUASICONCAVE
    return rules.closed(out), value.size


def _grid(expr: Expr, variable: Column, box: Mapping[Column, Interval]) -> tuple[Columns, tuple[int, int]]:
    """A row for each combination of the rest and each step of the variable; the variable changes fastest."""
    rest = sorted({c for c in columns(expr) if c != variable}, key=lambda c: (c.alias, c.name))
    steps = min(1_000, int(POINTS ** (1 / (len(rest) + 1))))
    if steps < FEWEST:
        raise NoGridError(f"{len(rest) + 1} columns are too many for a grid of {POINTS} points")
    sides = [_side(c, expr, box, steps) for c in (*rest, variable)]
    places = np.meshgrid(*(np.arange(len(side)) for side in sides), indexing="ij")
    rows = {
        (c.alias, c.name): Vector(side.data[at.ravel()], None)
        for c, side, at in zip((*rest, variable), sides, places, strict=True)
    }
    last = len(sides[-1])
    return rows, (places[0].size // last, last)


def _side(column: Column, expr: Expr, box: Mapping[Column, Interval], steps: int) -> Vector:
    if column.type is Type.BOOLEAN:
        return Vector(np.array([False, True]), None)
    if column.type is Type.VARCHAR:
        texts = {part.value for part in _literals(expr) if isinstance(part.value, str)}
        return Vector(np.array([*sorted(texts), "\x00other"], np.object_), None)
    span = box[column]
    lo, hi = float(span.lo), float(span.hi)
    if max(abs(lo), abs(hi)) > DECLARED:
        raise NoGridError(f"a grid needs a CHECK that bounds {column.name or 'every column'}")
    if column.type.integral:
        return Vector(np.unique(np.linspace(lo, hi, steps).round().astype(np.int64)), None)
    return Vector(np.linspace(lo, hi, steps), None)


def _literals(expr: Expr) -> list[Literal]:
    if isinstance(expr, Literal):
        return [expr]
    return [part for arg in expr.args for part in _literals(arg)] if isinstance(expr, Call) else []

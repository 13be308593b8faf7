"""Measures of relations: the exact length, area or volume of their points.

The measure of a tuple is computed by recursion over its faces (Lasserre, "An analytical expression and an
algorithm for the volume of a convex polyhedron", 1983), which needs no roots: with rational coefficients it
is rational. The measure of a relation is the sum over disjoint tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tamis.constraints.atoms import Linear
from tamis.constraints.normal_form import Kind
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Numbers
from tamis.errors import RefusedError

# The work grows with the number of constraints to the power of the number of variables.
MOST_DIMENSIONS = 6

_Row: TypeAlias = tuple[tuple[Fraction, ...], Fraction]  # coefficients, constant: sum <= constant


def measure(relation: Relation) -> Fraction:
    """The measure of a relation's points: length, area, volume, … by the number of variables.

    Boundaries count nothing. Raises `RefusedError` for symbols, integers, infinite measures, no variables,
    and more than `MOST_DIMENSIONS` variables.

    >>> triangle = Relation.parse("0 <= x AND x <= y AND y <= 3 OR x = 7", ["x", "y"])
    >>> measure(triangle)
    Fraction(9, 2)
    """
    _check(relation)
    return sum((_of_tuple(relation, each) for each in relation.disjoint().tuples), Fraction(0))


def _check(relation: Relation) -> None:
    names = relation.variables
    if relation.theory.numbers is Numbers.INTEGER:
        raise RefusedError("a measure is of real numbers, not of integers", hint="use real numbers")
    if not names or len(names) > MOST_DIMENSIONS:
        raise RefusedError(
            f"a relation of {len(names)} variables has no measure here",
            hint=f"measure 1 to {MOST_DIMENSIONS} variables",
        )
    symbol = next((name for name in names if relation.kinds.get(name) is Kind.SYMBOL), None)
    if symbol is not None:
        raise RefusedError(f"'{symbol}' is a symbol, which has no length", hint="measure numbers only")


def _of_tuple(relation: Relation, found: Any) -> Fraction:
    theory, names = relation.theory, relation.variables
    atoms = [atom for atom in theory.atoms(found) if isinstance(atom, Linear)]
    if any(atom.op == "=" for atom in atoms):
        return Fraction(0)
    for name in names:
        interval = theory.interval(found, name)
        if interval.lower is not None and interval.lower == interval.upper:
            return Fraction(0)
    if theory.conjunction([Linear(atom.terms, "<", atom.constant) for atom in atoms]) is None:
        return Fraction(0)
    for name in names:
        interval = theory.interval(found, name)
        if interval.lower is None or interval.upper is None:
            raise RefusedError(
                f"the measure is infinite: '{name}' is unbounded",
                hint="bound all variables that are measured",
            )
    rows = [
        (tuple(Fraction(dict(atom.terms).get(name, 0)) for name in names), atom.constant) for atom in atoms
    ]
    return _volume(rows, len(names))


def _volume(rows: Sequence[_Row], dimensions: int) -> Fraction:
    """The volume of a bounded polyhedron, which may be empty."""
    tightest: dict[tuple[Fraction, ...], Fraction] = {}
    for coefficients, constant in rows:
        scale = next((abs(value) for value in coefficients if value), None)
        if scale is None:
            if constant < 0:
                return Fraction(0)
            continue
        direction, distance = tuple(value / scale for value in coefficients), constant / scale
        tightest[direction] = min(distance, tightest.get(direction, distance))
    if dimensions == 1:
        upper, lower = tightest[(Fraction(1),)], -tightest[(Fraction(-1),)]
        return max(upper - lower, Fraction(0))
    total = Fraction(0)
    for direction, distance in tightest.items():
        if distance:
            others = [row for row in tightest.items() if row[0] != direction]
            total += distance * _face(direction, distance, others, dimensions)
    return total / dimensions


def _face(
    direction: tuple[Fraction, ...], distance: Fraction, others: Sequence[_Row], dimensions: int
) -> Fraction:
    """The volume of a face's projection along one variable, relative to that variable's coefficient."""
    pivot = next(index for index, value in enumerate(direction) if value)
    rows: list[_Row] = []
    for coefficients, constant in others:
        factor = coefficients[pivot] / direction[pivot]
        left = [value - factor * mine for value, mine in zip(coefficients, direction, strict=True)]
        rows.append(((*left[:pivot], *left[pivot + 1 :]), constant - factor * distance))
    return _volume(rows, dimensions - 1) / abs(direction[pivot])

"""Random unions of conjunctions of linear constraints, and their points: without the product's code.

A constraint is a row of coefficients, a constant and a flag: `row . point <= constant`, or `<` if strict.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Row = tuple[tuple[int, ...], int | Fraction, bool]
Union = list[list[Row]]


def text_of(union: Union, names: Sequence[str]) -> str:
    """The union as a SQL condition."""
    return " OR ".join("(" + " AND ".join(_row_text(row, names) for row in part) + ")" for part in union)


def _row_text(row: Row, names: Sequence[str]) -> str:
    coefficients, constant, strict = row
    terms = " + ".join(f"{value} * {name}" for value, name in zip(coefficients, names, strict=True) if value)
    return f"{terms} {'<' if strict else '<='} {constant}"


def random_row(r: random.Random, dimensions: int, theory: str) -> Row:
    """A bound, or a constraint between two variables, or three of them in theory linear."""
    row = [0] * dimensions
    strict = r.random() < 0.5
    if dimensions == 1 or r.random() < 0.4:
        row[r.randrange(dimensions)] = r.choice((-1, 1))
        return tuple(row), r.randint(-2, 4), strict
    one, other = r.sample(range(dimensions), 2)
    if theory == "linear":
        for index in r.sample(range(dimensions), r.randint(2, min(3, dimensions))):
            row[index] = r.choice((-1, 1))
        return tuple(row), r.randint(-2, 4), strict
    row[one], row[other] = (r.choice((1, 1, 2)), -1) if theory == "monotone" else (1, -1)
    return tuple(row), 0 if theory == "dense" else r.randint(-2, 2), strict


def box(dimensions: int, least: int, greatest: int) -> list[Row]:
    """The constraints of a closed cube."""
    rows: list[Row] = []
    for index in range(dimensions):
        for sign, end in ((1, greatest), (-1, -least)):
            rows.append((tuple(sign * (index == other) for other in range(dimensions)), end, False))
    return rows


def inside(union: Union, points: Ints, scale: int) -> Bools:
    """The points, of shape (n, dimensions) in units of 1 / scale, that are in the union."""
    found = np.zeros(len(points), np.bool_)
    for part in union:
        held = np.ones(len(points), np.bool_)
        for coefficients, constant, strict in part:
            total, end = points @ np.array(coefficients, np.int64), int(constant) * scale
            held &= total < end if strict else total <= end
        found |= held
    return found


def grid(dimensions: int, least: int, greatest: int, step: int, scale: int) -> Ints:
    """All points with coordinates from `least` to `greatest` that are multiples of step / scale."""
    axis = np.arange(least * scale, greatest * scale + 1, step, dtype=np.int64)
    mesh = np.meshgrid(*[axis] * dimensions, indexing="ij")
    return np.stack([each.ravel() for each in mesh], axis=1) if dimensions else np.zeros((1, 0), np.int64)


def exact_measure(union: Union, dimensions: int) -> Fraction:
    """The length, area or volume of a bounded union, by exact integration along each variable in turn.

    Between the coordinates of all common points of constraints, the measure of a section is a polynomial. Its
    degree is the number of variables of the section.
    """
    rows = [
        ([Fraction(value) for value in coefficients], Fraction(constant))
        for part in union
        for coefficients, constant, _ in part
    ]
    return _integral(union, rows, dimensions, [])


def _integral(
    union: Union, rows: list[tuple[list[Fraction], Fraction]], dimensions: int, point: list[Fraction]
) -> Fraction:
    if not dimensions:
        return Fraction(_contains(union, point[::-1]))
    ends = sorted({end for some in combinations(rows, dimensions) if (end := _last(some)) is not None})
    # Nodes within an interval and weights for polynomials of degree dimensions - 1.
    nodes = [Fraction(k, dimensions + 1) for k in range(1, dimensions + 1)]
    weights = [_weight(nodes, index) for index in range(dimensions)]
    total = Fraction(0)
    for lower, upper in pairwise(ends):
        for node, weight in zip(nodes, weights, strict=True):
            value = lower + node * (upper - lower)
            section = [(row[:-1], constant - row[-1] * value) for row, constant in rows]
            found = _integral(union, section, dimensions - 1, [*point, value])
            total += weight * (upper - lower) * found
    return total


def _contains(union: Union, point: Sequence[Fraction]) -> bool:
    for part in union:
        totals = [
            (sum(c * v for c, v in zip(row, point, strict=True)) - constant, strict)
            for row, constant, strict in part
        ]
        if all(total < 0 or (total == 0 and not strict) for total, strict in totals):
            return True
    return False


def _last(some: Sequence[tuple[list[Fraction], Fraction]]) -> Fraction | None:
    """The last coordinate of the one point on some hyperplanes, by Cramer's rule; None if there isn't one."""
    matrix = [row for row, _ in some]
    determinant = _determinant(matrix)
    if not determinant:
        return None
    return _determinant([[*row[:-1], constant] for row, constant in some]) / determinant


def _determinant(matrix: Sequence[Sequence[Fraction]]) -> Fraction:
    if len(matrix) == 1:
        return matrix[0][0]
    return sum(
        (
            (-1) ** index * value * _determinant([[*row[:index], *row[index + 1 :]] for row in matrix[1:]])
            for index, value in enumerate(matrix[0])
            if value
        ),
        Fraction(0),
    )


def _weight(nodes: Sequence[Fraction], index: int) -> Fraction:
    """The integral over [0, 1] of the polynomial that is 1 at one node and 0 at the others."""
    polynomial = [Fraction(1)]
    for other, node in enumerate(nodes):
        if other != index:
            scale = nodes[index] - node
            lower, higher = [-node * c / scale for c in polynomial], [c / scale for c in polynomial]
            polynomial = [a + b for a, b in zip([*lower, Fraction(0)], [Fraction(0), *higher], strict=True)]
    return sum((value / (power + 1) for power, value in enumerate(polynomial)), Fraction(0))

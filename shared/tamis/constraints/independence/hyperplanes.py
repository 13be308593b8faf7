"""Hyperplanes between which the slices of a linear relation keep their form.

The slice of a relation at values x of some variables X is the set of points over the other variables Y with
which x is in the relation. Each constraint `a X + b Y <= c` bounds the slice at x by the hyperplane
`b Y = c - a x`, which moves with x. Where x crosses no hyperplane that `hyperplanes` returns, the moving ones
pass through no new common point: all slices have the same faces in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from tamis.constraints.atoms import Linear, linear
from tamis.errors import RefusedError

# Sets of constraints that are looked at: a few seconds.
MOST_SETS = 200_000

Row: TypeAlias = dict[str, Fraction]


def hyperplanes(atoms: Iterable[Linear], names: Collection[str]) -> list[Linear]:
    """The hyperplanes over the variables `names`, as equations.

    There is one for each smallest set of constraints whose coefficients of the other variables are linearly
    dependent: the combination of the constraints that has none of these variables. Raises `RefusedError` for
    too many sets.
    """
    found: dict[Linear, None] = {}
    equations = {linear(atom.terms, "=", atom.constant): None for atom in atoms}
    several = [each for each in equations if isinstance(each, Linear)]
    for combination in _combinations(several, names):
        plane = linear(combination[0].items(), "=", combination[1])
        if isinstance(plane, Linear):
            found[plane] = None
    return list(found)


def side(plane: Linear, point: Mapping[str, Fraction]) -> int:
    """The side of a hyperplane on which a point lies: -1, 0 or 1."""
    total = sum((coefficient * point[name] for name, coefficient in plane.terms), Fraction(0))
    return (total > plane.constant) - (total < plane.constant)


def _combinations(atoms: Sequence[Linear], names: Collection[str]) -> Iterator[tuple[Row, Fraction]]:
    """The combinations of minimally dependent constraints, as coefficients and a constant."""
    looked_at = 0
    # Each entry: the next constraint to try, and the independent ones before it in echelon form. A reduced
    # row has the coefficients of the other variables, those of `names`, and the constant.
    stack: list[tuple[int, tuple[tuple[str, Row, Row, Fraction], ...]]] = [(0, ())]
    while stack:
        first, basis = stack.pop()
        for index in range(first, len(atoms)):
            looked_at += 1
            if looked_at > MOST_SETS:
                raise RefusedError(
                    f"{len(atoms)} different constraints are too many for a test of independence",
                    hint="simplify the relation, or test its parts",
                )
            rest, kept, constant = _reduced(atoms[index], names, basis)
            if rest:
                pivot = min(rest)
                stack.append((index + 1, (*basis, (pivot, rest, kept, constant))))
            else:
                yield kept, constant


def _reduced(
    atom: Linear, names: Collection[str], basis: Iterable[tuple[str, Row, Row, Fraction]]
) -> tuple[Row, Row, Fraction]:
    rest = {name: Fraction(value) for name, value in atom.terms if name not in names}
    kept = {name: Fraction(value) for name, value in atom.terms if name in names}
    constant = atom.constant
    for pivot, other_rest, other_kept, other_constant in basis:
        if pivot in rest:
            factor = rest[pivot] / other_rest[pivot]
            rest = _minus(rest, other_rest, factor)
            kept = _minus(kept, other_kept, factor)
            constant -= factor * other_constant
    return rest, kept, constant


def _minus(one: Row, other: Row, factor: Fraction) -> Row:
    found = {
        name: one.get(name, Fraction(0)) - factor * other.get(name, Fraction(0)) for name in {*one, *other}
    }
    return {name: value for name, value in found.items() if value}

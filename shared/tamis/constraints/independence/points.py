"""Sample points of tuples: one more than a tuple has dimensions, none in the span of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tamis.constraints.atoms import Atom, Equality, Linear, Value, linear, number
from tamis.constraints.independence.hyperplanes import side
from tamis.constraints.kinds import Kind
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Interval, Theory

Point: TypeAlias = dict[str, Value]

# Each hyperplane meets few of the first points that are tried, unless it contains the tuple.
_ATTEMPTS = 10_000
_HALVINGS = 1000


def spanning_points(relation: Relation, found: Any, planes: Sequence[Linear], fresh: str) -> list[Point]:
    """Points of a tuple of a relation, on the same side of each hyperplane.

    There is one point more than the tuple has dimensions, and no flat with fewer dimensions contains all. A
    variable whose symbol isn't determined counts as a dimension; it gets symbols that begin with `fresh`,
    which must not occur in the relation.
    """
    for attempt in range(_ATTEMPTS):
        # The points for all attempts lie on a curve that no hyperplane contains.
        start = [Fraction(1, 2 + attempt + index) for index in range(len(relation.variables))]
        origin, free = _point(relation, found, start, fresh)
        sides = _sides(planes, origin)
        step = Fraction(1, 2)
        for _ in range(_HALVINGS):
            points = [origin]
            for index in free:
                moved = [*start[:index], start[index] + step * (1 - start[index]), *start[index + 1 :]]
                points.append(_point(relation, found, moved, fresh, index)[0])
            others = [_sides(planes, point) for point in points[1:]]
            if all(other == sides for other in others):
                return points
            if any(
                mine == 0 != theirs for other in others for mine, theirs in zip(sides, other, strict=True)
            ):
                break  # the origin lies on a hyperplane that doesn't contain the tuple
            step /= 2
    raise AssertionError("no point of the tuple is off the hyperplanes")


def part_at(theory: Theory[Any], found: Any, point: Mapping[str, Value]) -> Any | None:
    """The part of a tuple in which variables have the values of a point; None if it is empty."""
    values = theory.conjunction([_equation(name, value) for name, value in point.items()])
    assert values is not None  # each variable has one value
    return theory.conjoin(found, values)


def _point(
    relation: Relation, found: Any, shares: Sequence[Fraction], fresh: str, moved: int | None = None
) -> tuple[Point, list[int]]:
    """A point, and the indexes of the variables that aren't determined by those before them.

    Each number has the given share of its interval, between 0 and 1. Variable `moved`, if it is a symbol,
    gets another symbol than without `moved`.
    """
    point: Point = {}
    free: list[int] = []
    theory, rest = relation.theory, found
    for index, name in enumerate(relation.variables):
        value: Value
        if relation.kinds.get(name) is Kind.NUMBER:
            interval = theory.interval(rest, name)
            value = _within(interval, shares[index])
            determined = interval.lower is not None and interval.lower == interval.upper
        else:
            known = _symbol(theory.atoms(rest), name)
            value = known or f"{fresh}{index}{'' if index != moved else 'x'}"
            determined = known is not None
        if not determined:
            free.append(index)
        point[name] = value
        rest = part_at(theory, rest, {name: value})
    return point, free


def _within(interval: Interval, share: Fraction) -> Fraction:
    """A number within an interval, strictly unless it is a point: greater for a greater share."""
    lower, upper = interval.lower, interval.upper
    if lower is not None and upper is not None:
        return lower + (upper - lower) * share
    if lower is not None:
        return lower + share / (1 - share)
    if upper is not None:
        return upper - (1 - share) / share
    return share / (1 - share) - (1 - share) / share


def _symbol(atoms: Sequence[Atom], name: str) -> str | None:
    """The symbol that a tuple's atoms determine for a variable, if they do."""
    for atom in atoms:
        if isinstance(atom, Equality) and atom.constant and atom.equal and atom.left == name:
            return atom.right
    return None


def _equation(name: str, value: Value) -> Atom:
    if isinstance(value, str):
        return Equality(name, value, True, True)
    atom = linear([(name, 1)], "=", value)
    assert isinstance(atom, Linear)  # there is a variable
    return atom


def _sides(planes: Sequence[Linear], point: Point) -> list[int]:
    numbers = {name: number(value) for name, value in point.items() if not isinstance(value, str)}
    return [side(plane, numbers) for plane in planes]

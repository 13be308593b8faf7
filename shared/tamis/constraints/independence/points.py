"""Sample points of tuples: one more than a tuple has dimensions, none in the span of the others.

The slice of a relation at values x of some variables X is the set of points over the other variables Y with
which x is in the relation. Each constraint `a X + b Y <= c` bounds the slice at x by the hyperplane
`b Y = c - a x`, which moves with x. Where x crosses no hyperplane that `hyperplanes` returns, the moving ones
pass through no new common point: all slices have the same faces in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tamis.constraints.atoms import Atom, Equality, Linear, Value, linear, number
from tamis.constraints.normal_form import Kind
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Interval, Theory
from tamis.errors import RefusedError

# Sets of constraints that are looked at: a few seconds.
MOST_SETS = 200_000

Row: TypeAlias = dict[str, Fraction]

Point: TypeAlias = dict[str, Value]

# Each hyperplane meets few of the first points that are tried, unless it contains the tuple.
_ATTEMPTS = 10_000
_HALVINGS = 1000


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

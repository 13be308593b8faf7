"""Rewritten expressions have the points of the expressions, by the oracle and by the algebra itself."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import reduce

from tests.oracle.constraints.random_linear import Points, random_disjuncts, random_points, text

from tamis.constraints.expressions import (
    Base,
    Difference,
    Expression,
    Join,
    Projection,
    Renaming,
    Selection,
    Union,
    condition_of,
    evaluate,
    rewrite,
    select,
    variables,
)
from tamis.constraints.relation import Relation
from tamis.constraints.theories import theory_of

NAMES = ("v", "w", "x", "y", "z")


def _leaf(random_: random.Random, names: tuple[str, ...]) -> tuple[Expression, Points]:
    disjuncts = random_disjuncts(random_, names, 2, 3)
    return Base(Relation.parse(text(disjuncts), names, theory="linear")), Points.of(names, disjuncts)


def _random(random_: random.Random, depth: int) -> tuple[Expression, Points]:
    """A random expression and its points by the oracle."""
    if depth == 0:
        return _leaf(random_, tuple(random_.sample(NAMES, 2)))
    one, points = _random(random_, depth - 1)
    names = points.names
    match random_.choice(("select", "project", "join", "join", "union", "difference", "rename")):
        case "select":
            disjuncts = [random_disjuncts(random_, (name,), 2, 1) for name in random_.sample(names, 2)[:2]]
            condition = " AND ".join(f"({text(each)})" for each in disjuncts)
            selected = (Points.of((next(iter(each[0][0][0])),), each) for each in disjuncts)
            return select(one, condition), reduce(Points.join, selected, points)
        case "project":
            kept = tuple(random_.sample(names, random_.randint(2, len(names))))
            return Projection(one, kept), points.project(kept)
        case "join":
            others = [_leaf(random_, tuple(random_.sample(NAMES, 2))) for _ in range(random_.randint(1, 2))]
            joined = Join((one, *(each for each, _ in others)))
            return joined, reduce(Points.join, (each for _, each in others), points)
        case "union":
            other, more = _leaf(random_, names)
            return Union(one, other), points.union(more)
        case "difference":
            other, more = _leaf(random_, names)
            return Difference(one, other), points.difference(more)
    renamed = dict(zip(names, random_.sample(names, len(names)), strict=True))
    return Renaming(one, renamed), points.rename(renamed)


def _condition(selection: Selection) -> str:
    return condition_of(selection, theory_of("linear", "real"), variables(selection)).text()


def test_rewriting() -> None:
    """The rewritten expression has the same variables in the same order, and the same points."""
    random_ = random.Random(1)
    changed = 0
    for _ in range(60):
        expression, points = _random(random_, 3)
        rewritten = rewrite(expression)
        before, after = evaluate(expression), evaluate(rewritten)
        assert variables(rewritten) == before.variables == after.variables
        for point in random_points(random_, points.names, 10):
            inside = points.contains(point)
            assert before.contains(point) == inside
            assert after.contains(point) == inside
        changed += type(rewritten) is not type(expression)
    assert changed > 5


def test_selections_reach_the_relations() -> None:
    """A selection above a join of a renamed union ends at the relations that have its variables."""
    left = Base(Relation.parse("x < y OR x > y + 5", ["x", "y"], theory="linear"))
    right = Base(Relation.parse("y < z", ["y", "z"], theory="linear"))
    union = Union(left, left)
    found = rewrite(select(Join((Renaming(union, {"x": "w"}), right)), "w > 1 AND y + z < 3 AND w + z > 0"))
    assert isinstance(found, Selection)
    assert _condition(found) == "w + z > 0"
    assert isinstance(found.of, Join)
    renamed, selected = found.of.parts
    assert isinstance(selected, Selection)
    assert _condition(selected) == "y + z < 3"
    assert isinstance(renamed, Renaming)
    assert isinstance(renamed.of, Union)
    for part in (renamed.of.left, renamed.of.right):
        assert isinstance(part, Selection)
        assert _condition(part) == "x > 1"


def test_small_joins_come_first() -> None:
    """Relations whose intervals hardly overlap are joined before others."""

    def stripes(name: str, first: int) -> Base:
        parts = (f"({name} >= {first + 2 * i} AND {name} < {first + 2 * i + 1})" for i in range(20))
        return Base(Relation.parse(" OR ".join(parts), [name, f"{name}_{first}"], theory="linear"))

    many, more, far = stripes("x", 0), stripes("y", 1), stripes("x", 38)
    found = rewrite(Join((many, more, far)))
    assert isinstance(found, Projection)
    assert isinstance(found.of, Join)
    last = next(part for part in found.of.parts if isinstance(part, Join))
    assert set(last.parts) == {many, far}
    assert evaluate(found).contains(
        {"x": Fraction(77, 2), "x_0": Fraction(0), "y": Fraction(1), "y_1": Fraction(0), "x_38": Fraction(0)}
    )


def test_projections_stay_over_whole_numbers() -> None:
    """Over whole numbers a projection is closed after the join, and not before it."""
    even = Base(Relation.parse("x = 2 * y", ["x", "y"], theory="linear", numbers="integer"))
    half = Base(Relation.parse("y = z", ["y", "z"], theory="linear", numbers="integer"))
    expression = Projection(Join((even, half)), ("x", "z"))
    assert evaluate(rewrite(expression)).text() == evaluate(expression).text() == "x = 2 * z"

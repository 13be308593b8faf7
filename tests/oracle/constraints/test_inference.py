"""Inferred independence against slices on grids, for random expressions over random relations."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.constraints.expressions import (
    Difference,
    Expression,
    Join,
    Measure,
    Named,
    Projection,
    Renaming,
    Union,
    select,
    variables,
)
from tamis.constraints.independence.evaluation import check_schema, evaluate
from tamis.constraints.independence.inference import check_aggregates, derive
from tamis.constraints.independence.slices import Related, independent, products
from tamis.constraints.relation import Relation
from tamis.errors import RefusedError

FRESH = ["m1", "m2", "m3"]


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def random_condition(r: random.Random, over: list[str]) -> str:
    if len(over) > 1 and r.random() < 0.5:
        one, other = r.sample(over, 2)
        return f"{one} {r.choice(('<', '<=', '='))} {other}"
    return f"{r.choice(over)} {r.choice(('<', '<=', '=', '>'))} {r.randint(0, 3)}"


def random_base(r: random.Random, name: str, over: list[str]) -> tuple[Named, Relation]:
    """A union of products of two random sides, and the schema that says so."""
    first = r.sample(over, r.randint(1, len(over) - 1))
    sides = (first, [each for each in over if each not in first])
    cube = " AND ".join(f"0 <= {each} AND {each} <= 3" for each in over)
    parts = [
        " AND ".join([cube, *(random_condition(r, side) for side in sides for _ in range(r.randint(0, 2)))])
        for _ in range(r.randint(1, 2))
    ]
    relation = Relation.parse(" OR ".join(f"({part})" for part in parts), over)
    return Named(name, tuple(over), ((frozenset(sides[0]), frozenset(sides[1])),)), relation


def random_expression(r: random.Random, bases: list[Named], depth: int) -> Expression:
    if not depth:
        return r.choice(bases)
    of = random_expression(r, bases, depth - 1)
    over = list(variables(of))
    kind = r.random()
    if kind < 0.25:
        return select(of, " AND ".join(random_condition(r, over) for _ in range(r.randint(1, 2))))
    if kind < 0.35 and len(over) > 2:
        return Projection(of, tuple(r.sample(over, len(over) - 1)))
    if kind < 0.5:
        condition = select(of, random_condition(r, over))
        return r.choice((Union, Difference))(of, condition)
    if kind < 0.65:
        other = random_expression(r, bases, 0)
        return Join((of, other)) if len({*over, *variables(other)}) <= 4 else of
    if kind < 0.7:
        return Renaming(of, {over[0]: over[1], over[1]: over[0]})
    into = next((name for name in FRESH if name not in over), None)
    if into is None or len(over) < 2:
        return of
    return Measure(of, tuple(r.sample(over, r.randint(1, len(over) - 1))), into)


@pytest.mark.parametrize("times", also_long(100))
def test_what_is_inferred_holds_in_every_relation(times: int) -> None:
    r = random.Random(SEED)
    derived = refused = measures = 0
    for _ in range(cases(1 / 200) * times):
        pairs = [random_base(r, "r", list("xyz")), random_base(r, "s", r.sample("uxyz", 3))]
        bases = [base for base, _ in pairs]
        expression = random_expression(r, bases, r.randint(1, 3))
        try:
            check_aggregates(expression)
        except RefusedError:
            refused += 1
            continue
        over = variables(expression)
        found = None
        for sides in product((0, 1, 2), repeat=len(over)):
            one, other = ([n for n, side in zip(over, sides, strict=True) if side == at] for at in (0, 1))
            if not one or not other or derive(expression, one, other) is None:
                continue
            if found is None:
                found = evaluate(expression, {base.name: relation for base, relation in pairs})
            derived += 1
            measures += isinstance(expression, Measure)
            assert not isinstance(products(found.project([*one, *other]), one), Related), (
                expression,
                one,
                other,
            )
    assert derived > 0 and refused > 0 and measures > 0


def test_a_join_needs_the_sides_of_common_variables() -> None:
    """x and u are independent in both operands, one of which lacks each, and related in x < z AND z < u."""
    left, right = Named("r", ("x", "z")), Named("s", ("z", "u"))
    assert derive(Join((left, right)), "x", "u") is None
    kept = Named("r", ("x", "z"), ((names("x"), names("z")),))
    assert derive(Join((kept, right)), "x", "u") is not None


def test_a_selection_with_many_conjuncts_is_looked_at_as_a_whole() -> None:
    """Also the ninth conjunct, which relates x and y, counts."""
    others = [f"a{i}" for i in range(8)]
    base = Named("r", ("x", "y", *others), ((frozenset(["x", *others]), names("y")),))
    conjuncts = [f"x < {other}" for other in others]
    for order in ([*conjuncts, "x < y"], ["x < y", *conjuncts]):
        assert derive(select(base, " AND ".join(order)), "x", "y") is None
    assert derive(select(base, " AND ".join(conjuncts)), "x", "y") is not None


def test_rule_7_of_theorem_9_is_false() -> None:
    """X = {x} and Y = {z} are independent in R, but not where the measure of u by x, y, z is 2."""
    base = Named("r", tuple("xyzu"), ((names("x"), names("z")), (names("x y z"), names("u"))))
    relation = Relation.parse(
        "y < z AND 0 < u AND u < 1 OR x < y AND 0 < u AND u < 1 OR 5 < u AND u < 7", list("xyzu")
    )
    check_schema(base, relation)
    lengths = Measure(base, ("x", "y", "z"), "length")
    assert derive(base, "x", "z") and derive(lengths, "x", "z") is None
    result = evaluate(lengths, {"r": relation})
    assert not independent(result.select("length = 2").project(["x", "z"]), ["x"], ["z"])


def test_rule_7_needs_more_than_y_is_the_rest_of_z_for_other_aggregates_than_measures() -> None:
    """Here X = {x} and Y = {y} make up Z, and are independent in R; R has the point u = 0 where x < y only.

    An aggregate function that tells if 0 is in a set would be 1 for x < y only. A measure doesn't see the
    point.
    """
    square = "0 < x AND x < 1 AND 0 < y AND y < 1"
    names_ = list("xyu")
    wedge = Relation.parse(f"{square} AND 0 <= u AND u < 1 AND u > x - y", names_, theory="linear")
    rest = Relation.parse(f"{square} AND 0 < u AND u < 1", names_, theory="linear")
    relation = wedge.union(rest)
    for part in (wedge, rest):
        both = part.project(["x"]).join(part.project(["y"]))
        assert both.equivalent(part.project(["x", "y"]))  # so x and y are independent in R, by Definition 24
    assert not isinstance(products(relation, ["u"]), Related)
    has_zero = relation.select("u = 0").project(["x", "y"])
    assert not independent(has_zero, ["x"], ["y"])
    lengths = Measure(
        Named("r", tuple(names_), ((names("x"), names("y")), (names("x y"), names("u")))),
        ("x", "y"),
        "length",
    )
    assert derive(lengths, ["x"], ["y"])
    found = evaluate(lengths, {"r": relation})
    assert found.equivalent(Relation.parse(f"{square} AND length = 1", ["x", "y", "length"], theory="linear"))


def test_independence_is_not_inferred_in_a_difference_of_two_variables_of_three() -> None:
    """Example 13: x and z are independent in y < z OR x < y, and related in its complement."""
    everything = Named("all", tuple("xyz"), ((names("x"), names("y z")), (names("z"), names("x y"))))
    part = Named("part", tuple("xyz"), ((names("x"), names("z")),))
    assert derive(part, "x", "z") and derive(Difference(everything, part), "x", "z") is None
    relation = Relation.parse("y < z OR x < y", list("xyz"))
    check_schema(part, relation)
    complement = Relation.parse("TRUE", list("xyz")).difference(relation)
    assert not independent(complement, ["x"], ["z"])


def test_a_measure_without_proof_is_refused_even_if_the_relation_would_allow_it() -> None:
    base = Named("r", ("x", "y"))
    database = {"r": Relation.parse("0 < x AND x < 1 AND 0 < y AND y < 2", ["x", "y"])}
    with pytest.raises(RefusedError, match="nothing proves"):
        evaluate(Measure(base, ("x",), "length"), database)
    kept = Named("r", ("x", "y"), ((names("x"), names("y")),))
    result = evaluate(Measure(kept, ("x",), "length"), database)
    assert result.contains({"x": Fraction(1, 2), "length": 2})
    with pytest.raises(RefusedError, match="keeps independent"):
        evaluate(
            Measure(kept, ("x",), "length"), {"r": Relation.parse("0 < x AND x < y AND y < 2", ["x", "y"])}
        )

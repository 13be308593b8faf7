"""Relations: operations by example, names, kinds of variables, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tamis.constraints import Relation, tuple_sets
from tamis.errors import InputError, RefusedError, SqlErrors


def temporal(text: str, *names: str) -> Relation:
    return Relation.parse(text, names or ("x", "y"), theory="temporal")


def test_tightest_form_of_the_papers_example() -> None:
    """Goldin-1997, examples 1 and 2."""
    found = Relation.parse("A < 5 AND 1 < B AND B < 7 AND C = 6 AND A > B", ["A", "B", "C"])
    assert found.project(["B"]).text() == '"B" > 1 AND "B" < 5'
    assert found.implies(Relation.parse("a < c and b < c and a > 1", ["A", "B", "C"]))


def test_difference_of_the_papers_example() -> None:
    """Goldin-1997, example 6."""
    both = ("x", "y")
    found = temporal("7 <= x AND x < 8 AND 1 < y AND y < 4 OR 3 < x AND x < 8 AND 1 < y AND y < 4", *both)
    rest = found.difference(temporal("7 < x AND x < 15 AND 2 < y AND y < 5"))
    expected = "3 < x AND x <= 7 AND 1 < y AND y < 4 OR 7 < x AND x < 8 AND 1 < y AND y <= 2"
    assert rest.equivalent(temporal(expected))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("(x - y <= 3 AND x > 0) OR y = 5", "(x > 0 AND x - y <= 3) OR y = 5"),
        ("x BETWEEN 1 AND 2 / 4", "FALSE"),
        ("NOT x BETWEEN 1 AND 2", "x < 1 OR x > 2"),
        ("x IN (1, 1.5, 3e1)", "x = 1 OR x = 3 / 2 OR x = 30"),
        ("NOT (x < y OR x > 3)", "x <= 3 AND x >= y"),
        ("x <> 2 AND x >= 2", "x > 2"),
        ("2 * (x - y) < 3 - x + x / 1", "x - y < 3 / 2"),
        ("x = x OR x < y", "TRUE"),
        ("3 < 2", "FALSE"),
        ("x < y AND y < x", "FALSE"),
        ("x <= y AND y <= x", "x = y"),
        ("TRUE AND NOT FALSE", "TRUE"),
        ("X < y", "x < y"),
        ("x < 5 AND x < 7 OR x < 3", "x < 5"),
    ],
)
def test_text(sql: str, text: str) -> None:
    assert temporal(sql).text() == text
    assert temporal(text).text() == text


def test_integers_are_tightened() -> None:
    found = Relation.parse("2 * x < 2 * y + 5 AND y < 3.5", ["x", "y"], theory="temporal", numbers="integer")
    assert found.text() == "x - y <= 2 AND y <= 3"
    assert found.contains({"x": 5, "y": 3}) and not found.contains({"x": Fraction(9, 2), "y": 3})
    assert Relation.parse("1 < x AND x < 2", ["x"], numbers="integer").empty()


def test_symbols() -> None:
    found = Relation.parse("a = b AND b <> 'it''s' AND c <> a AND x < 3", ["a", "b", "c", "x"])
    assert found.text() == "a = b AND a <> 'it''s' AND a <> c AND x < 3"
    assert found.project(["b", "c"]).text() == "b <> 'it''s' AND b <> c"
    assert found.project(["c"]).text() == "TRUE"
    assert found.contains({"a": "u", "b": "u", "c": "v", "x": 2})
    assert not found.contains({"a": "u", "b": "u", "c": "u", "x": 2})
    assert Relation.parse("a = 'u' AND a = 'v' OR a <> b AND b = a", ["a", "b"]).empty()


def test_variables_get_their_kind_later() -> None:
    found = Relation.parse("a <> b", ["a", "b"])
    assert found.contains({"a": 1, "b": 2}) and found.contains({"a": "u", "b": "v"})
    assert found.select("a < 3").text() == "(a < 3 AND a < b) OR (a < 3 AND a > b)"
    assert found.select("a = 'u'").text() == "a = 'u' AND b <> 'u'"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("x * y < 3", "nonlinear constraints are refused"),
        ("x / y < 3", "nonlinear constraints are refused"),
        ("x ^ 2 < 3", "nonlinear constraints are refused"),
        ("abs(x) < 3", "functions are refused"),
        ("x IN (SELECT 1)", "recursion inside a constraint is refused"),
        ("EXISTS (WITH RECURSIVE r AS (SELECT 1) SELECT 1)", "recursion inside a constraint is refused"),
        ("x IS NULL", "NULL is refused"),
        ("x < 'a'", "symbols have no order"),
        (
            "x < 3 AND y = 'a' AND x = y",
            "is used as a number and as a symbol|one is a number and one a symbol",
        ),
        ("x = 'a' AND x > 2", "line 1, column 13: 'x' is used as a number and as a symbol"),
        ("x + 1 = 'a'", "compared with a number"),
        ("x - y < 3", "not a constraint of dense order"),
        ("x + y < 3", "not a constraint of dense order"),
    ],
)
def test_refused(sql: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        Relation.parse(sql, ["x", "y"])


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("x <", "line 1, column 4"),
        ("x", "a comparison is missing"),
        ("x < y < 3", "a comparison can't be compared"),
        ("x < 3 AND\n z < 3", "line 2, column 2: 'z' is not a variable"),
        ("x < 1 / 0", "divides by zero"),
        ("x < 1e999999999", "more than 300 digits"),
        ("x < " + "(" * 50 + "1" + ")" * 50, "nested deeper"),
        ("x < 1" + " + 1" * 500, "nested deeper"),
        ("x < 1" + " * 1e300" * 50, "too long"),
        (" OR ".join(f"x < {i}" for i in range(6000)), "more than 20000 tokens"),
        ("x < 'a' + 1", "can't be calculated with"),
        ("t.x < 3", "plain name"),
    ],
)
def test_mistakes(sql: str, reason: str) -> None:
    with pytest.raises(SqlErrors, match=reason):
        Relation.parse(sql, ["x", "y"])


def test_dense_order_over_integers_refuses_projections_that_it_cannot_say() -> None:
    found = Relation.parse("x < y AND y < z", ["x", "y", "z"], numbers="integer")
    assert found.text() == "x < y AND y < z"
    assert found.project(["x", "y"]).text() == "x < y"
    with pytest.raises(RefusedError, match="isn't closed under projection over the integers"):
        found.project(["x", "z"])


def test_names() -> None:
    found = temporal("x < y")
    assert found.rename({"x": "y", "y": "x"}).text() == "x > y"
    assert found.join(temporal("y < z", "y", "z")).variables == ("x", "y", "z")
    assert temporal('"select" < "x y"', "select", "x y").text() == '"select" < "x y"'
    assert temporal('A < "a"', "a", "A").text() == '"A" < a'
    for wrong in (
        lambda: Relation.parse("TRUE", ["x", "x"]),
        lambda: Relation.parse("TRUE", "xy"),
        lambda: found.project(["z"]),
        lambda: found.project(["x", "x"]),
        lambda: found.rename({"z": "u"}),
        lambda: found.rename({"x": "y"}),
        lambda: found.union(temporal("x < z", "x", "z")),
        lambda: found.contains({"x": 1}),
        lambda: found.contains({"x": 1, "y": 1, "z": 1}),
        lambda: found.contains({"x": 1, "y": 0.5}),  # type: ignore[dict-item]
        lambda: found.contains({"x": 1, "y": "a", "z": 2}),
        lambda: Relation.parse("TRUE", ["x"], theory="fuzzy"),
        lambda: Relation.parse("TRUE", ["x"], numbers="complex"),
    ):
        with pytest.raises(InputError):
            wrong()


def test_different_relations_are_not_mixed() -> None:
    real = temporal("x < y")
    with pytest.raises(RefusedError, match="aren't closed under projection"):
        real.join(Relation.parse("x < y", ["x", "y"], theory="temporal", numbers="integer"))
    with pytest.raises(RefusedError, match="of theory 'temporal' and one of 'dense'"):
        real.union(Relation.parse("x < y", ["x", "y"]))
    with pytest.raises(RefusedError, match="is used as a number and as a symbol"):
        real.join(Relation.parse("x = 'a'", ["x"], theory="temporal"))


def test_large_products_are_refused() -> None:
    stripes = [" OR ".join(f"{name} = {i}" for i in range(101)) for name in "xy"]
    with pytest.raises(RefusedError, match="more than 10000 tuples"):
        Relation.parse(f"({stripes[0]}) AND ({stripes[1]})", ["x", "y"])


def test_long_operations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair of these tuples is excluded by an interval."""
    monkeypatch.setattr(tuple_sets, "MOST_PAIRS", 2000)
    found = temporal(" OR ".join(f"(x - y > {2 * i} AND x - y < {2 * i + 1})" for i in range(50)))
    same = temporal(" OR ".join(f"(x - y > {2 * i} AND x - y < {2 * i + 1})" for i in reversed(range(50))))
    for operation in (found.join, found.difference):
        with pytest.raises(RefusedError, match="combines more than 2000 pairs of tuples"):
            operation(same)
    monkeypatch.setattr(tuple_sets, "MOST_PAIRS", 1000)
    with pytest.raises(RefusedError, match="combines more than 1000 pairs of tuples"):
        found.implies(same)


def test_constants_without_a_short_common_denominator_are_refused() -> None:
    names = [f"x{i}" for i in range(20)]
    digits = 10**250
    text = " AND ".join(f"{name} < 1 / {digits + 2 * i + 1}" for i, name in enumerate(names))
    with pytest.raises(RefusedError, match="common denominator of the constants has more than 4096 bits"):
        Relation.parse(text, names)
    several = " AND ".join(f"x < 1 / {digits + 2 * i + 1}" for i in range(20))
    assert Relation.parse(several, ["x"]).text() == f"x < 1 / {digits + 39}"


def test_alternatives_that_contradict_each_other_cost_nothing() -> None:
    gaps = " AND ".join(f"(x < {2 * i} OR x > {2 * i + 1})" for i in range(100))
    assert Relation.parse(gaps, ["x"]).text().count(" OR ") == 100

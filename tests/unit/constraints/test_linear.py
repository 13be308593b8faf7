"""Examples of linear constraints: ends, strictness, numbers beyond floating point, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from tamis.constraints.relation import Relation
from tamis.constraints.theory import Interval
from tamis.errors import RefusedError


def _linear(text: str, *names: str, numbers: str = "real") -> Relation:
    return Relation.parse(text, names, theory="linear", numbers=numbers)


def test_a_projection_is_eliminated_at_output() -> None:
    """The shadow of a polygon."""
    polygon = _linear("2 * x + 3 * y <= 6 AND x >= 0 AND y >= 1 / 2 AND z = x + y", "x", "y", "z")
    shadow = polygon.project(["z"])
    assert shadow.interval("z") == Interval(Fraction(1, 2), True, Fraction(11, 4), True)
    assert shadow.text() == "z >= 1 / 2 AND z <= 11 / 4"


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("x <= 1 / 3 AND x >= 1 / 3 + 1e-40", True),
        ("x <= 1 / 3 + 1e-40 AND x > 1 / 3", False),
        ("x + y < 1 AND x >= 1 / 2 AND y >= 1 / 2", True),
        ("x + y <= 1 AND x >= 1 / 2 AND y >= 1 / 2", False),
        ("1e200 * x <= y AND y <= 1 AND x >= 1e-200 AND y < 1", True),
        ("x < y AND y < z AND z < x", True),
        ("3 * x > 1 AND 3 * x < 1 + 1e-30", False),
    ],
)
def test_decisions_at_the_boundary(text: str, empty: bool) -> None:
    """Differences that floating point can't tell are told."""
    assert _linear(text, "x", "y", "z").empty() is empty


def test_ends_that_are_not_values() -> None:
    """A strict row beside the end decides, even if the row of the end itself is closed."""
    triangle = _linear("x <= 3 AND x + y < 4 AND y >= 1", "x", "y")
    assert triangle.interval("x") == Interval(None, False, Fraction(3), False)
    assert _linear("x <= 3 AND x + y <= 4 AND y >= 1", "x", "y").interval("x") == Interval(
        None, False, Fraction(3), True
    )


def test_a_large_system_is_decided() -> None:
    """Forty variables in a cycle of inequalities, which is contradictory by 1e-30."""
    names = [f"x{i}" for i in range(40)]
    chain = " AND ".join(f"2 * {a} - 2 * {b} <= -1" for a, b in pairwise(names))
    assert not _linear(f"{chain} AND x39 - x0 >= 39 / 2", *names).empty()
    assert not _linear(f"{chain} AND x39 - x0 <= 39 / 2", *names).empty()
    assert _linear(f"{chain} AND x39 - x0 <= 39 / 2 - 1e-30", *names).empty()


def test_joins_keep_the_variables_of_both() -> None:
    """Variables that were projected away before the join stay apart."""
    one = _linear("x = 2 * y AND y > 1", "x", "y").project(["x"])
    two = _linear("z = 3 * y AND y < 1", "z", "y").project(["z"])
    assert one.join(two).variables == ("x", "z")
    assert one.join(two).text() == "x > 2 AND z < 3"


def test_whole_numbers() -> None:
    """Satisfiability by the Omega test, and what isn't closed."""
    assert _linear("4 * x - 6 * y = 1", "x", "y", numbers="integer").empty()
    assert _linear(
        "27 <= 11 * x + 13 * y AND 11 * x + 13 * y <= 45 AND -10 <= 7 * x - 9 * y AND 7 * x - 9 * y <= 4",
        "x",
        "y",
        numbers="integer",
    ).empty()
    doubled = _linear("x = 2 * y AND x >= 0 AND x <= 11", "x", "y", numbers="integer")
    assert doubled.project(["y"]).text() == "y >= 0 AND y <= 5"
    assert doubled.interval("x") == Interval(Fraction(0), True, Fraction(10), True)
    with pytest.raises(RefusedError, match="divisibility"):
        doubled.project(["x"])


def test_symbols_are_refused() -> None:
    """Linear constraints compare numbers."""
    with pytest.raises(RefusedError, match="no symbols"):
        _linear("x = 'a'", "x")

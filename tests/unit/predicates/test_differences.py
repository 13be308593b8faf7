"""Comparisons between attributes: what is read, written, implied and refused."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import InputError, RefusedError
from tamis.expressions.nodes import Type
from tamis.predicates.matching import implies, match
from tamis.predicates.parse import parse
from tamis.predicates.selectivity import Uniform, selectivity

WHOLE = dict.fromkeys("abc", Type.BIGINT)
TIMES = dict.fromkeys("tu", Type.TIMESTAMP)


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("a < b + 3", "a < b + 3"),
        ("b > a", "a < b"),
        ("NOT a < b", "a >= b"),
        ("a <> b", "a < b OR a > b"),
        ("a < b OR a >= b", "a IS NOT NULL AND b IS NOT NULL"),
        ("a < b AND b < a", "FALSE"),
        ("a < b AND b < c AND c < a", "FALSE"),
        ("a < b + 1 AND a > b + 2", "FALSE"),
        ("a < b + 1 AND b < 0 AND a > 2", "FALSE"),
        ("a = a", "a IS NOT NULL"),
        ("a < b OR a = b", "a <= b"),
        ("5 >= a - b", "a - b <= 5"),
        ("b - a < 5", "a - b > -5"),
        ("a BETWEEN b - 1 AND b + 1", "a >= b - 1 AND a <= b + 1"),
        ("a - b < 1 OR a - b >= 1", "a - b IS NOT NULL"),
    ],
)
def test_doubles(sql: str, canonical: str) -> None:
    types = dict.fromkeys("abc", Type.DOUBLE)
    found = parse(sql, types)
    assert found.sql() == canonical
    assert parse(canonical, types).boxes == found.boxes


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        # Where b + 3 isn't an int64, it is NULL.
        ("a < b + 3", "a < b + 3 AND b < 9223372036854775805"),
        ("a + 1 < b + 1", "a < b AND a < 9223372036854775807 AND b < 9223372036854775807"),
        ("a < b AND b < a + 2", "b = a + 1 AND a < 9223372036854775806"),
        ("a - b <= 2", "a - b < 3"),
        ("a - b <= 2 AND a - b > 1", "a = b + 2"),
        ("b = a + 1", "a = b - 1 AND a < 9223372036854775807"),
        ("a > b AND a < b + 1", "FALSE"),
        ("a - b <= 5 OR b - a <= 5", "a - b < 0 AND a < b OR b - a <= 0 AND a >= b"),
        ("a < b OR a - b <= 2", "b - a >= -2 OR a < b"),
        ("a - b <= 9223372036854775807", "a - b IS NOT NULL"),
        ("b - a >= -9223372036854775807", "a - b IS NOT NULL AND b - a IS NOT NULL"),
    ],
)
def test_whole_numbers(sql: str, canonical: str) -> None:
    found = parse(sql, WHOLE)
    assert implies(found, parse(canonical, WHOLE)) and implies(parse(canonical, WHOLE), found)
    assert implies(found, parse(found.sql(), WHOLE)) and implies(parse(found.sql(), WHOLE), found)


def test_times_differ_by_intervals() -> None:
    found = parse("t < u + INTERVAL '5' SECOND AND t - u > INTERVAL '1' SECOND", TIMES)
    assert parse(found.sql(), TIMES).boxes == found.boxes
    assert implies(found, parse("u < t", TIMES))
    assert found.holds({"t": np.array([2_000_000, 6_000_000]), "u": np.array([0, 0])}).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "t - u < INTERVAL '5' SECOND OR t >= u - INTERVAL '1' SECOND",
        "u - t >= INTERVAL '60' SECOND",
        "t <= u + INTERVAL '36600' DAY",
        "t - u > INTERVAL '36600' DAY",
        "t - u BETWEEN INTERVAL '-36600' DAY AND INTERVAL '36600' DAY",
        "t - u IS NOT NULL AND u - t IS NOT NULL",
    ],
)
def test_times_are_written_as_they_can_be_read(sql: str) -> None:
    found = parse(sql, TIMES)
    again = parse(found.sql(), TIMES)
    assert implies(found, again) and implies(again, found)


def test_implication_follows_differences() -> None:
    assert implies(parse("a < b + 3"), parse("a < b + 5")) and not implies(
        parse("a < b + 5"), parse("a < b + 3")
    )
    assert implies(parse("a < b AND b < c"), parse("a < c"))
    assert implies(parse("a < b + 3 AND b <= c"), parse("a < c + 3"))
    assert implies(parse("a < b + 3 AND b < 2"), parse("a < 5")) and not implies(
        parse("a < b + 3"), parse("a < 5")
    )
    assert implies(parse("a > 1 AND b >= a"), parse("b > 1"))
    assert implies(parse("a IS NOT NULL AND b IS NOT NULL"), parse("a < b OR a = b OR b < a"))
    assert not implies(parse("TRUE"), parse("a < b OR a >= b"))
    assert implies(parse("TRUE"), parse("a < b OR a >= b OR a IS NULL OR b IS NULL"))
    assert implies(parse("a < b AND b < a + 2", WHOLE), parse("b - a = 1", WHOLE))
    found = match(parse("a < b"), parse("a <= b"))
    assert not found.implied and found.relaxed.sql() == "a <= b"


def test_rounding_is_not_passed_over() -> None:
    """0.1 + 0.2 is more than 0.3: a < b + 0.3 and a - 0.3 < b differ, as do sums in steps and at once."""
    assert not implies(parse("a < b + 0.3"), parse("a - 0.3 < b"))
    assert not implies(parse("a - b <= 0.3"), parse("a <= b + 0.3"))
    steps, at_once = parse("a <= b + 0.1 AND b <= c + 0.2"), parse("a <= c + 0.3")
    assert not implies(steps, at_once)
    row = {"a": np.array([0.1 + 0.2 + 0.1]), "b": np.array([0.1 + 0.2]), "c": np.array([0.1])}
    assert steps.holds(row).tolist() == [True]
    assert at_once.holds(row).tolist() == [bool(row["a"][0] <= row["c"][0] + 0.3)]


def test_what_is_refused_says_why() -> None:
    with pytest.raises(RefusedError, match="'a' is BIGINT and 'x' is DOUBLE"):
        parse("a < x", {"a": Type.BIGINT, "x": Type.DOUBLE})
    with pytest.raises(RefusedError, match=r"0\.5 isn't a whole number"):
        parse("a < b + 0.5", WHOLE)
    with pytest.raises(RefusedError, match="are rounded separately"):
        parse("a + 1 < b + 2")
    with pytest.raises(RefusedError, match="'a' is compared with itself"):
        parse("a < a + 1")
    with pytest.raises(RefusedError, match="too large"):
        parse("a < b + 9223372036854775807", WHOLE)
    with pytest.raises(RefusedError, match="not a comparison of an attribute"):
        parse("a < b * 2")
    with pytest.raises(InputError, match="'a' is DOUBLE in the stream's predicate and BIGINT in the query's"):
        match(parse("a < b"), parse("a > 1", WHOLE))


def test_columns_of_any_form_are_evaluated() -> None:
    order = parse("a < b + 3")
    assert order.holds({"a": np.array([2.9, 3.0, np.nan]), "b": np.zeros(3)}).tolist() == [True, False, False]
    gap = parse("a - b <= 2")
    assert gap.holds({"a": np.array([1e308, 1.0]), "b": np.array([-1e308, np.inf])}).tolist() == [
        False,
        False,
    ]
    whole = parse("a < b + 3", WHOLE)
    ends = np.array([-(2**63), 5, 2**63 - 1])
    assert whole.holds({"a": ends, "b": ends[::-1].copy()}).tolist() == [False, True, False]
    nulls = np.array([None, 5, -(2**63)], np.object_)
    assert whole.holds({"a": nulls, "b": np.array([1, 5, 2**63 - 4])}).tolist() == [False, True, True]


def test_the_share_is_at_most_that_of_the_rest() -> None:
    spread = {name: Uniform(0, 10) for name in "ab"}
    assert selectivity(parse("a < b AND b < 5"), spread) == 0.5
    assert selectivity(parse("a < b"), spread) == 1.0


@pytest.mark.timeout(60)
def test_many_attributes_that_may_be_null_are_compared_in_time() -> None:
    """All choices of what is NULL among 26 attributes would take days."""
    pairs = [(f"c{n}", f"c{n + 1}") for n in range(25)]
    every = parse(" OR ".join(f"{a} < {b} OR {a} >= {b} OR {a} IS NULL" for a, b in pairs))
    assert implies(parse("c0 < 5"), every)
    chain = parse(" OR ".join(f"{a} < {b}" for a, b in pairs))
    assert not implies(parse("c0 IS NOT NULL"), chain)


@pytest.mark.timeout(60)
def test_what_takes_too_long_to_compare_is_refused() -> None:
    known = parse("a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL")
    many = parse(" OR ".join(f"a < b + {n} AND b < c + {n} AND a > {n}" for n in range(60)))
    with pytest.raises(RefusedError, match="isn't known after 50000 steps"):
        implies(known, many)
    whole = dict.fromkeys("abc", Type.BIGINT)
    assert not implies(parse(known.sql(), whole), parse(many.sql(), whole))
    # Five boxes cover the plane, none of which lies in two others; the rest only seems to matter.
    wheel = "d < 1 AND e < 0 OR d >= 1 AND e < 1 OR d >= 0 AND e >= 1 OR d < 0 AND e >= 0"
    sides = " OR ".join(f"a{n} < b{n} AND x{n} > 1 OR a{n} >= b{n} AND x{n} <= 1" for n in range(14))
    with pytest.raises(RefusedError, match="isn't known after 50000 steps"):
        implies(
            parse("d IS NOT NULL AND e IS NOT NULL"),
            parse(f"{wheel} OR d BETWEEN 0 AND 1 AND e BETWEEN 0 AND 1 OR {sides}"),
        )

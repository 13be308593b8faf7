"""Contradictions by enclosures: the messages, and what is still accepted."""

from __future__ import annotations

import re

import pytest

from tamis.analysis.conjuncts import analyse
from tamis.query.parse import catalog_of

_STREAMS = """
CREATE STREAM sa (k VARCHAR KEY, ts TIMESTAMP, s VARCHAR, x DOUBLE CHECK (x BETWEEN 0 AND 10), y DOUBLE,
  n INT, WATERMARK FOR ts AS ts);
CREATE STREAM sb (k VARCHAR KEY, ts TIMESTAMP, s VARCHAR, x DOUBLE CHECK (x BETWEEN -4 AND 6),
  WATERMARK FOR ts AS ts);
CREATE PATTERN p VALUES (0, 1, 4, 1, 0);
"""
_DOMAIN = "is never true for values of the declared domains"


def _contradiction(where: str) -> str | None:
    catalog = catalog_of(
        f"{_STREAMS} CREATE ALERT q AS SELECT a.k FROM sa a JOIN sb b ON a.k = b.k AND a.ts = b.ts"
        f" WHERE {where};"
    )
    found = analyse(catalog.alerts["q"].query, catalog).contradiction
    return None if found is None else re.sub(r" \(line \d+, column \d+\)", "", found)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a.k = 'x' AND b.k = 'y'", "no tuples meet all of a.k = 'x', b.k = 'y', a.k = b.k"),
        ("a.x IS NULL AND a.x > b.x", "no tuples meet all of a.x IS NULL, a.x > b.x"),
        ("a.x * b.x > 100", f"a.x * b.x > 100 {_DOMAIN}: a.x * b.x is at most 60"),
        ("abs(a.x - b.x) > 14", f"abs(a.x - b.x) > 14 {_DOMAIN}"),
        (
            "round(a.x * b.x, 1) < -41",
            f"round(a.x * b.x, 1) < -41 {_DOMAIN}: round(a.x * b.x, 1) is at least -40",
        ),
        ("sign(a.x) > 1", f"sign(a.x) > 1 {_DOMAIN}: sign(a.x) is at most 1"),
        ("mod(a.n, 7) > 6", f"mod(a.n, 7) > 6 {_DOMAIN}"),
        ("extract(hour FROM a.ts) = 24", f"extract(hour FROM a.ts) = 24 {_DOMAIN}"),
        ("length(a.s) < 0", f"length(a.s) < 0 {_DOMAIN}"),
        ("coalesce(a.x, 20) > 20", f"coalesce(a.x, 20) > 20 {_DOMAIN}"),
        ("lower(a.s) = 'Pump'", f"lower(a.s) = 'Pump' {_DOMAIN}"),
        ("a.s LIKE 'a%' AND a.s = 'pump'", "no tuples meet all of a.s LIKE 'a%', a.s = 'pump'"),
        ("a.s LIKE 'a%' AND a.s LIKE 'b%'", "no tuples meet all of a.s LIKE 'a%', a.s LIKE 'b%'"),
        (
            "a.s = 'x' AND a.s IS DISTINCT FROM 'x'",
            "no tuples meet all of a.s = 'x', a.s IS DISTINCT FROM 'x'",
        ),
        ("a.x BETWEEN 6 AND 5", f"a.x BETWEEN 6 AND 5 {_DOMAIN}"),
        ("a.y > 1e150", f"a.y > 1e150 {_DOMAIN}: a.y is at most 1e+100"),
        ("CASE WHEN a.x > 3 THEN 1 ELSE 2 END > 2", f"CASE WHEN a.x > 3 THEN 1 ELSE 2 END > 2 {_DOMAIN}"),
    ],
)
def test_messages_have_the_conditions_of_the_user(where: str, message: str) -> None:
    found = _contradiction(where)
    assert found is not None
    assert found.startswith(message), found


def test_the_scale_of_a_match_lies_in_its_range() -> None:
    call = "(x, 'p', 0.5, scale => (0.5, 2))"
    for condition, refused in (("scale{} > 2.5", True), ("scale{} < 0.4", True), ("scale{} > 1.9", False)):
        catalog = catalog_of(
            f"{_STREAMS} CREATE ALERT q AS SELECT k FROM sa WHERE similar{call} AND {condition.format(call)};"
        )
        assert (analyse(catalog.alerts["q"].query, catalog).contradiction is not None) is refused


@pytest.mark.parametrize(
    "where",
    [
        "a.x * b.x >= 60",
        "a.x IS NULL AND coalesce(a.x, b.x) > 3",
        "a.s LIKE 'a%' AND a.s LIKE 'ab%'",
        "upper(a.s) = 'PUMP' AND lower(a.s) = 'pump'",
        "mod(a.n, 7) = 6",
        "mod(a.x + b.x, 7) > 6.5",
        "a.x / b.x > 1000",
        "a.y IS DISTINCT FROM b.x AND a.y IS NULL",
        "sign(a.y - b.x) >= -1",  # true for all numbers
        "floor(a.x - b.x) <> 3",
    ],
)
def test_what_some_tuples_meet(where: str) -> None:
    assert _contradiction(where) is None


def test_columns_of_a_stream_without_partner_are_null() -> None:
    """LEFT ASOF JOIN gives NULL also in columns that are NOT NULL."""
    for where, refused in (("b.v IS NULL", False), ("coalesce(b.v, 7) > 5", False), ("b.v > 5", True)):
        catalog = catalog_of(
            f"{_STREAMS} CREATE STREAM sc (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE NOT NULL CHECK (v < 3),"
            " WATERMARK FOR ts AS ts); CREATE ALERT q AS SELECT a.k FROM sa a LEFT ASOF JOIN sc b"
            f" ON a.k = b.k AND a.ts >= b.ts WHERE {where};"
        )
        assert (analyse(catalog.alerts["q"].query, catalog).contradiction is not None) is refused

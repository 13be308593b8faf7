"""Verdicts on queries over streams without time: table I and the examples of arasu-2004, and more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tamis.bounded.timeless.repairs import together
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Explain
from tamis.query.parse import catalog_of, parse

STREAMS = """
CREATE STREAM s (a INT, b INT, c INT);
CREATE STREAM t (d INT, e INT);
CREATE STREAM u (x INT, y INT CHECK (y BETWEEN 1 AND 6), z DOUBLE, k DOUBLE, v VARCHAR, f BOOLEAN);
CREATE STREAM w (z DOUBLE);
"""
CASES = [
    (name.strip(), *(part.strip() for part in rest.split("--!")))
    for name, _, rest in (
        case.partition("\n")
        for case in (Path(__file__).parents[2] / "fixtures/bounded/papers.sql").read_text().split("---- ")[1:]
    )
]


@pytest.mark.parametrize(("sql", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_verdict_of_the_papers_examples(sql: str, expected: str) -> None:
    catalog = catalog_of(STREAMS)
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain)
    assert isinstance(statement.target, AlertDef)
    found = explain(catalog, statement.target)
    verdict, _, more = expected.partition(" ")
    assert found.memory.verdict == verdict, found
    assert found.accepted == (verdict == "bounded")
    if verdict == "bounded":
        assert found.memory.bound is not None
        assert found.memory.bound == int(more or found.memory.bound), found.memory.formula
    else:
        assert found.memory.theorem.endswith(more)
        assert (found.memory.witness is not None) == (verdict == "unbounded")
    for repair in found.memory.repairs:
        assert _repaired(sql, repair), repair


def _repaired(sql: str, repair: str) -> bool:
    """True if the query is bounded with the repair written into it."""
    repair, _, place = repair.partition(" in SELECT ")
    if place:
        members = re.split(" UNION (?:ALL )?", sql)
        return _repaired(members[int(place) - 1].replace("SELECT", "SELECT DISTINCT", 1), repair)
    body = re.split(" GROUP BY | HAVING ", sql)[0]
    sql, rest = body, sql[len(body) :]
    if "SELECT DISTINCT" in repair:
        sql, repair = sql.replace("SELECT", "SELECT DISTINCT", 1), repair.replace("SELECT DISTINCT", "")
        repair = repair.replace(", and the condition", "AND")
    more = repair if " WHERE " in sql else repair.replace("AND", "WHERE", 1)
    catalog = catalog_of(STREAMS)
    (statement,) = parse(f"EXPLAIN {sql} {more}{rest}", catalog)
    assert isinstance(statement, Explain)
    return explain(catalog, statement.target).accepted


def test_the_limits_of_a_repair_leave_room_for_the_constants_of_whole_numbers_alone() -> None:
    catalog = catalog_of(STREAMS)
    sql = "EXPLAIN SELECT u.x FROM u, w WHERE u.z = w.z AND u.z = 0.5 AND u.x > -150"
    (statement,) = parse(sql, catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    assert explain(catalog, statement.target).memory.repairs == (
        "AND u.x <= 100",
        "AND u.x BETWEEN -149 AND 100",
    )


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT DISTINCT s.a FROM s, t WHERE s.b < t.d AND s.c < t.e AND s.a = 10",
            "no tuple of s can stand for all others: s.b < t.d needs the tuple with the least s.b, and"
            " s.c < t.e needs the tuple with the least s.c, which may be different tuples",
        ),
        (
            "SELECT s.b FROM s, t WHERE s.b * t.d > 3",
            "not proven: SELECT shows s.b, which has no limits: a later tuple may need any of its values."
            " No proof was found, since Tamis can decide only join conditions of the form a - b < 5 over"
            " integers, and s.b * t.d > 3 isn't one",
        ),
    ],
)
def test_the_reason_says_which_tuples_or_conditions_are_too_many(sql: str, reason: str) -> None:
    (statement,) = parse(f"EXPLAIN {sql}", catalog := catalog_of(STREAMS))
    assert isinstance(statement, Explain)
    assert explain(catalog, statement.target).reason == reason


@pytest.mark.parametrize(
    ("query", "verdict", "repairs"),
    [
        ("SELECT a * 0 AS z, count(*) AS n FROM s GROUP BY a * 0", "unknown", ("AND s.a BETWEEN 0 AND 100",)),
        ("SELECT a AS z, count(*) AS n FROM s GROUP BY a", "unbounded", ("AND s.a BETWEEN 0 AND 100",)),
        ("SELECT y / 2 AS half, count(*) AS n FROM u GROUP BY half", "bounded", ()),
        ("SELECT x > 3 AS large, min(z) AS n FROM u GROUP BY large", "bounded", ()),
        ("SELECT sum(a * 0) AS n FROM s, t WHERE s.a < t.d", "unknown", None),
        ("SELECT sum(a) AS n FROM s, t WHERE s.a < t.d", "unbounded", None),
        ("SELECT max(2 * b) AS n FROM s, t WHERE s.a < t.d", "unbounded", None),
        ("SELECT max(2 * b) AS n FROM s, t WHERE s.a < t.d AND s.a BETWEEN 1 AND 3", "bounded", ()),
        ("SELECT median(z * 2) AS n FROM u", "unknown", ()),
        ("SELECT percentile_cont(0.1) WITHIN GROUP (ORDER BY y) AS n FROM u", "bounded", ()),
        ("SELECT stddev(z) AS n FROM u", "bounded", ()),
        ("SELECT stddev(b) AS n FROM s, t WHERE s.a < t.d", "unknown", None),
        ("SELECT count(*) AS n FROM s, t WHERE s.a < t.d HAVING count(*) > 3", "unbounded", None),
        (
            "SELECT count(*) AS n FROM s, t WHERE s.a < t.d"
            " HAVING count(*) FILTER (WHERE b > 5 AND b < 4) > 3",
            "unknown",
            None,
        ),
        ("SELECT count(*) AS n FROM s, t WHERE s.a < t.d HAVING stddev(b) > 3", "unknown", None),
    ],
)
def test_aggregated_expressions(query: str, verdict: str, repairs: tuple[str, ...] | None) -> None:
    memory = explain(catalog_of(f"{STREAMS} CREATE ALERT q AS {query}"), "q").memory
    assert memory.verdict == verdict, memory
    assert repairs is None or memory.repairs == repairs
    assert not any("(" in one for one in memory.repairs)


def test_a_repair_with_distinct_and_conditions_says_both_parts() -> None:
    assert together(["SELECT DISTINCT", "AND s.b >= 0"]) == "SELECT DISTINCT, and the condition s.b >= 0"
    assert together(["AND s.a >= 0", "AND s.b >= 0"]) == "AND s.a >= 0 AND s.b >= 0"
    assert together(["SELECT DISTINCT"]) == "SELECT DISTINCT"


@pytest.mark.parametrize(
    ("columns", "where", "verdict"),
    [
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b = 1), b INT", "", "unbounded"),  # b may be NULL
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b = 1), b INT", "WHERE b = 2", "bounded"),
        ("a INT CHECK (a BETWEEN 0 AND b), b INT CHECK (b <= 5)", "", "unbounded"),
        ("a INT CHECK (a BETWEEN 0 AND b), b INT NOT NULL CHECK (b <= 5)", "", "bounded"),
        ("a INT NOT NULL CHECK (a BETWEEN 0 AND b), b INT NOT NULL CHECK (b <= 5)", "", "bounded"),
        ("a INT CHECK (a >= 0), b INT CHECK (b <= 5 AND a <= b)", "WHERE b IS NOT NULL", "bounded"),
        ("a INT CHECK (a >= 0), b INT CHECK (b <= 5 AND a <= b)", "", "unbounded"),
        ("a INT NOT NULL, b INT NOT NULL CHECK (a <= b)", "", "unbounded"),
        ("a DOUBLE CHECK (a IN (0.5, 1.5) OR a > 9)", "", "unbounded"),
        ("a INT, b VARCHAR CHECK (length(b) > 3)", "WHERE b LIKE 'x%'", "unbounded"),
        ("a INT CHECK (b IS NOT NULL OR a BETWEEN 0 AND 5), b INT", "", "unbounded"),
        ("a INT CHECK (CASE WHEN b > 0 THEN a = 1 ELSE a = 7 END), b INT", "", "unknown"),
        ("a INT CHECK (a IN (1, 2, NULL))", "", "unbounded"),  # NULL is admitted, and 7 IN these is NULL
        ("a INT CHECK (a <> 7)", "", "unbounded"),
        ("a INT CHECK (a = 1 OR a > 9)", "", "unbounded"),
        ("a INT CHECK (a IN (1, 9)), b INT CHECK (b > a)", "", "bounded"),
        ("a BIGINT CHECK (a + 1 <= 5 AND a >= 0)", "", "unknown"),  # NULL beyond 64 bits
        ("a INT CHECK (a + 1 <= 5 AND a >= 0)", "", "bounded"),
        ("a DOUBLE CHECK (a IN (0.5, 1.5))", "", "bounded"),
        ("a DOUBLE CHECK (a BETWEEN 0 AND 5)", "", "unbounded"),
        ("a DOUBLE CHECK (a = 1.5)", "", "bounded"),
        ("a VARCHAR CHECK (a < 'b')", "", "unknown"),
        ("a INT, b INT CHECK (a BETWEEN 0 AND 5)", "", "bounded"),
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b IS NULL), b INT", "", "unbounded"),
    ],
)
def test_a_check_is_known_to_hold(columns: str, where: str, verdict: str) -> None:
    catalog = catalog_of(f"CREATE STREAM s ({columns})")
    (statement,) = parse(f"EXPLAIN SELECT DISTINCT a FROM s {where}", catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    assert explain(catalog, statement.target).memory.verdict == verdict

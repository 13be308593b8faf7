"""Verdicts on queries over streams without time: table I and the examples of arasu-2004, and more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    """Is a query bounded once a repair is written into it?"""
    repair, _, place = repair.partition(" in SELECT ")
    if place:
        members = re.split(" UNION (?:ALL )?", sql)
        return _repaired(members[int(place) - 1].replace("SELECT", "SELECT DISTINCT", 1), repair)
    body = re.split(" GROUP BY | HAVING ", sql)[0]
    sql, rest = body, sql[len(body) :]
    if "SELECT DISTINCT" in repair:
        sql, repair = sql.replace("SELECT", "SELECT DISTINCT", 1), repair.replace("SELECT DISTINCT", "")
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
    assert "AND u.x <= 149" in explain(catalog, statement.target).memory.repairs


@pytest.mark.parametrize(
    ("columns", "where", "verdict"),
    [
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b = 1), b INT", "", "unbounded"),  # b may be NULL
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b = 1), b INT", "WHERE b = 2", "unknown"),
        ("a INT CHECK (a BETWEEN 0 AND b), b INT CHECK (b <= 5)", "", "unbounded"),
        ("a INT CHECK (a BETWEEN 0 AND b), b INT NOT NULL CHECK (b <= 5)", "", "unknown"),
        ("a INT CHECK (b IS NOT NULL OR a BETWEEN 0 AND 5), b INT", "", "unknown"),
        ("a INT CHECK (CASE WHEN b > 0 THEN a = 1 ELSE a = 7 END), b INT", "", "unknown"),
        ("a INT CHECK (a IN (1, 2, NULL))", "", "unbounded"),  # NULL is admitted, and 7 IN these is NULL
        ("a INT CHECK (a <> 7)", "", "unbounded"),
        ("a INT CHECK (a = 1 OR a > 9)", "", "unbounded"),
        ("a INT CHECK (a IN (1, 9)), b INT CHECK (b > a)", "", "bounded"),
        ("a BIGINT CHECK (a + 1 <= 5 AND a >= 0)", "", "unknown"),  # NULL beyond 64 bits
        ("a INT CHECK (a + 1 <= 5 AND a >= 0)", "", "bounded"),
        ("a DOUBLE CHECK (a IN (0.5, 1.5))", "", "unknown"),
        ("a DOUBLE CHECK (a BETWEEN 0 AND 5)", "", "unbounded"),
        ("a DOUBLE CHECK (a = 1.5)", "", "bounded"),
        ("a VARCHAR CHECK (a < 'b')", "", "unknown"),
        ("a INT, b INT CHECK (a BETWEEN 0 AND 5)", "", "bounded"),
        ("a INT CHECK (a BETWEEN 0 AND 5 OR b IS NULL), b INT", "", "unknown"),
    ],
)
def test_a_check_is_known_to_hold(columns: str, where: str, verdict: str) -> None:
    catalog = catalog_of(f"CREATE STREAM s ({columns})")
    (statement,) = parse(f"EXPLAIN SELECT DISTINCT a FROM s {where}", catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    assert explain(catalog, statement.target).memory.verdict == verdict

"""Conditions with constant and overlapping parts: each row counts once, as in DuckDB."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from tests.operators import standing_evaluator

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import WITHDRAWN

CONDITIONS = (
    "1 = 0 OR s.a < 1",
    "TRUE OR s.a < 1",
    "NULL OR s.a < 1",
    "s.a < 1 OR 1 = 0 OR s.a > 2",
    "1 IN (2, 3) OR s.a < 1",
    "abs(-1) > 1 OR s.a < 1",
    "length('ab') = 2 OR s.a < 1",
    "NOT (s.a >= 1 AND 1 = 1)",
    "NOT (FALSE OR s.a >= 1)",
    "(1 = 0 AND s.a > 0) OR (s.a < 1 AND 1 = 1) OR s.a < 2",
    "(s.a < 2 OR NULL) AND (2 BETWEEN 3 AND 4 OR s.a > -1)",
    "CASE WHEN 1 = 0 THEN TRUE END OR s.a IS NULL",
    "s.a < 1 OR s.a < 1 OR s.a < 2",
    "FALSE OR NULL OR 1 = 0",
)
QUERIES = {
    "count": "SELECT count(*) AS c, sum(s.a) AS d FROM s WHERE {}",
    "union": "SELECT s.a AS c FROM s WHERE {} UNION ALL SELECT b AS c FROM t WHERE b = 1",
    "distinct": "SELECT DISTINCT s.a AS c FROM s WHERE ({}) AND s.a BETWEEN 0 AND 3",
    "join": "SELECT t.b AS c, count(*) AS d FROM s, t WHERE s.a = t.b AND t.b IN (0, 1) AND ({})"
    " GROUP BY t.b",
    "having": "SELECT s.a AS c, count(*) AS d FROM s WHERE s.a BETWEEN 0 AND 3 GROUP BY s.a"
    " HAVING 1 = 0 OR count(*) > 1",
    "filter": "SELECT count(*) FILTER (WHERE {}) AS c FROM s",
}
STREAMS = """
CREATE STREAM s (a INT);
CREATE STREAM t (b INT);
"""
TIMED = """
CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM t (b INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""
VALUES = {"s": (2, -1, 0, None, 3, 0), "t": (0, 1, 1)}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", QUERIES)
def test_rows_over_streams_without_time(kind: str, condition: str) -> None:
    sql = QUERIES[kind].format(condition)
    query = standing_evaluator(f"{STREAMS} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
    found: Counter[tuple[object, ...]] = Counter()
    groups: dict[object, tuple[object, ...]] = {}
    for stream, values in VALUES.items():
        if stream not in query.streams:
            continue
        batch = {"a" if stream == "s" else "b": Vector.from_list(list(values), Type.INT)}
        rows = query.take(stream, batch, len(values))
        for row in zip(*(rows.columns[name].to_list() for name in rows.columns), strict=True):
            names = dict(zip(rows.columns, row, strict=True))
            gone = names.pop(WITHDRAWN, False)
            made = tuple(names.values())
            found[made] += 1
            groups[made[0] if "GROUP BY" in sql else None] = made if not gone else ()
    if "count" in sql:
        found = Counter(row for row in groups.values() if row)
    assert found == _expected(sql)


@pytest.mark.parametrize("condition", CONDITIONS[:-1])
def test_rows_in_application_time(condition: str) -> None:
    sql = f"SELECT s.a AS c, t.b AS d FROM s, t WHERE s.ts > t.ts AND t.b IN (0, 1) AND ({condition})"
    query = standing_evaluator(f"{TIMED} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
    found: Counter[tuple[object, ...]] = Counter()
    for stream, values in VALUES.items():
        times = Vector.from_list([10 * (stream == "s") + at for at in range(len(values))], Type.TIMESTAMP)
        batch = {"a" if stream == "s" else "b": Vector.from_list(list(values), Type.INT), "ts": times}
        query.take(stream, batch, len(values))
    for stream in VALUES:
        rows = query.advance(stream, 100)
        found.update(zip(*(one.to_list() for one in rows.columns.values()), strict=True))
    assert found == _expected(sql.replace("s.ts > t.ts AND", ""))


def _expected(sql: str) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as base:
        base.execute("CREATE TABLE s (a INT); CREATE TABLE t (b INT)")
        for stream, values in VALUES.items():
            base.executemany(f"INSERT INTO {stream} VALUES (?)", [(value,) for value in values])
        rows = base.execute(sql).fetchall()
    alone = len(rows) == 1 and "GROUP BY" not in sql and "count" in sql
    return Counter() if alone and not rows[0][0] and "FILTER" not in sql else Counter(rows)

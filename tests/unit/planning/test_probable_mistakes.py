"""Warnings about valid queries that probably don't mean what they say, and that their claims are true."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
from tests.rows_for_duckdb import insert

from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 1 AND 100),
  n INT CHECK (n BETWEEN 0 AND 5), up BOOLEAN, free DOUBLE, sure DOUBLE NOT NULL CHECK (sure > 1),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 3, rate = '1/minute');
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, y DOUBLE CHECK (y BETWEEN -4 AND 6),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 3, rate = '1/minute');
CREATE STREAM c (k VARCHAR KEY, ts TIMESTAMP, sure DOUBLE NOT NULL CHECK (sure < 5),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 3, rate = '1/minute');
"""
JOIN = "SELECT a.k FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '1' MINUTE WHERE"
SAME_TIME = "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts = b.ts WHERE"
COUNTS = "SELECT k, window_end FROM TUMBLE(a, ts, INTERVAL '10' MINUTE) GROUP BY k, window_end HAVING"
FRAME = "OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW)"
ROWS = "OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN {} PRECEDING AND CURRENT ROW)"
VALUES = ("a.x", "a.n", "b.y", "a.x - b.y", "a.n * b.y", "a.x / 2 + a.n", "abs(b.y) + a.x")
LAG = "lag(x, {}) OVER (PARTITION BY k ORDER BY ts)"


def warnings(query: str) -> str:
    found = explain(catalog_of(f"{STREAMS}CREATE ALERT q AS {query};"), "q")
    assert found.accepted, found.reason
    return "; ".join(found.warnings)


@pytest.mark.parametrize(
    "condition",
    [
        "s.x <= CAST(NULL AS DOUBLE) - r.x",
        "s.x + r.x > nullif(1, 1)",
        "r.x * 0 + s.x > NULL + 1",
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.k FROM a s JOIN r ON s.k = r.k WHERE",
        "SELECT s.k, window_end, count(*) AS c FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) s JOIN r ON s.k = r.k"
        " WHERE",
        "SELECT s.k FROM a s LEFT ASOF JOIN a r ON s.k = r.k AND s.ts > r.ts WHERE",
    ],
)
def test_a_condition_that_is_always_null_is_not_said_to_hold(
    query: str, condition: str, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text("k,x\nk1,1\n")
    table = (
        f"CREATE TABLE r (k VARCHAR, x DOUBLE CHECK (x BETWEEN 1 AND 9)) WITH (path = '{tmp_path}/r.csv');"
    )
    groups = "GROUP BY s.k, window_end" if "TUMBLE" in query else ""
    sql = f"{STREAMS}{table} CREATE ALERT q WITH (allow_unbounded = true) AS {query} {condition} {groups};"
    found = explain(catalog_of(sql), "q")
    told = "; ".join(found.warnings) if found.accepted else found.reason
    assert "always true" not in told and "is never true, as every comparison with NULL" in told


@pytest.mark.parametrize(
    ("query", "part"),
    [
        (
            "SELECT k FROM a WHERE x > 0.9",
            "x > 0.9 is always true for values of the declared domains: a.x is at",
        ),
        ("SELECT k FROM a WHERE n <> 7", "n <> 7 is always true"),
        (
            f"{JOIN} a.x - b.y > -6",
            "a.x - b.y > -6 is always true for values of the declared domains: a.x - b.y",
        ),
        ("SELECT k FROM a WHERE x > 0.9", "meant to leave out NULL, write a.x IS NOT NULL"),
        ("SELECT k FROM a WHERE k IS NOT NULL AND sure > 0.9", "or leave the condition out"),
        (
            "SELECT a.k, c.sure FROM a LEFT ASOF JOIN c ON a.k = c.k AND a.ts >= c.ts WHERE c.sure < 9",
            "meant to leave out NULL, write c.sure IS NOT NULL",
        ),
        (
            "SELECT a.k, a.window_end FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) a JOIN TUMBLE(b, ts, INTERVAL"
            " '1' MINUTE) b ON a.k = b.k AND a.window_end = b.window_end GROUP BY a.k, a.window_end HAVING"
            " count(*) < 3",
            "To find tuples of a without a partner, write an alert over a with WHERE NOT EXISTS (SELECT 1",
        ),
        (f"{SAME_TIME} a.x > b.y", "write ABS(a.ts - b.ts) <= INTERVAL '1' SECOND"),
        (f"{COUNTS} count(*) < 8", "add an alert with WHERE NO READING FOR INTERVAL '10' MINUTE"),
        (f"{COUNTS} count(*) <= 3 AND max(x) > 5", "a window without readings has no row"),
        (f"SELECT k FROM a QUALIFY min(x) {FRAME} > 20", "can hold with a single reading"),
        (f"SELECT k FROM a QUALIFY NOT bool_or(up) {FRAME}", "can hold with a single reading"),
        (f"SELECT k FROM a QUALIFY max(x) {FRAME} - min(x) {FRAME} < 0.5", "can hold with a single reading"),
        (f"SELECT k FROM a QUALIFY min(x) {ROWS.format(2)} > 20", "can hold with a single reading"),
        (
            f"SELECT k FROM a WHERE x < {LAG.format(61)}",
            "is always NULL: at the rate of a, the reading 61 before",
        ),
        (f"SELECT k FROM a WHERE x < avg(x) {ROWS.format(90)}", "avg(…) OVER (…) sees fewer readings"),
    ],
)
def test_a_probable_mistake_is_named(query: str, part: str) -> None:
    assert part in warnings(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a WHERE x > 1",
        "SELECT k FROM a WHERE free > 0.9",
        "SELECT k FROM a WHERE n IS NOT NULL",
        f"{JOIN} a.x - b.y > -5",
        f"{COUNTS} count(*) > 8",
        f"{COUNTS} count(*) BETWEEN 1 AND 7",
        f"{COUNTS} count(*) FILTER (WHERE up) < 8",
        f"SELECT k FROM a QUALIFY x - min(x) {FRAME} > 20",
        f"SELECT k FROM a QUALIFY max(x) {FRAME} - min(x) {FRAME} > 20",
        f"SELECT k FROM a QUALIFY max(free) {FRAME} - min(free) {FRAME} > 20",
        f"SELECT k FROM a QUALIFY min(x) {FRAME} > 20 AND count(*) {FRAME} >= 9",
        f"SELECT k FROM a WHERE x < {LAG.format(60)}",
    ],
)
def test_nothing_is_said_of_others(query: str) -> None:
    assert not warnings(query)


def test_a_condition_that_is_said_to_be_always_true_is_false_for_no_values() -> None:
    random_ = random.Random(1)
    ends = ((1.0, 100.0), (0, 5), (-4.0, 6.0))
    values = [
        (
            random_.choice((*x, random_.uniform(*x))),
            random_.choice((*n, random_.randint(*n))),
            random_.choice(y),
        )
        for x, n, y in [ends] * 400
    ]
    said = 0
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x DOUBLE, n INT, y DOUBLE)")
        insert(connection, "t", values)
        for _ in range(60):
            value = random_.choice(
                ("a.x", "a.n", "b.y", "a.x - b.y", "a.n * b.y", "a.x / 2 + a.n", "abs(b.y) + a.x")
            )
            condition = f"{value} {random_.choice(('<', '<=', '>', '>=', '<>'))} {random_.randint(-30, 110)}"
            try:
                told = "always true" in warnings(f"{JOIN} {condition}")
            except AssertionError:
                continue  # it is never true, and refused
            plain = condition.replace("a.", "").replace("b.", "")
            (false,) = connection.execute(f"SELECT count(*) FROM t WHERE NOT ({plain})").fetchone() or (0,)
            assert not (told and false), condition
            said += told
    assert said > 10


def test_a_reading_is_as_old_as_is_said() -> None:
    """At most two readings in any 10 seconds: the fifth before is at least 20 seconds older, and no more."""
    stream = (
        "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts) WITH ("
        "rate = '2/10s', history = '19 seconds');"
    )
    (said,) = explain(
        catalog_of(f"{stream}CREATE ALERT q AS SELECT k FROM s WHERE {LAG.format(5)} > x;"), "q"
    ).warnings
    assert "the reading 5 before is at least 20 s older" in said
    times = sorted([10 * pair + late for pair in range(3) for late in (0, 0)])
    assert all(sum(start <= one < start + 10 for one in times) <= 2 for start in times)
    assert times[5] - times[0] == 20

"""Queries with window functions: the watched streams that they read."""

from __future__ import annotations

import pytest

from tamis.declarations.watches import Frame, WindowFunction
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.sql_text import to_sql
from tamis.query.model import Query
from tamis.query.parse import catalog_of
from tamis.query.patterns.watch_text import window_text

SECOND = 1_000_000
STREAMS = """
CREATE STREAM air (room VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10), n INT, open BOOLEAN,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (history = '10 minutes');
CREATE STREAM wind (ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE PATTERN dip VALUES (0, -1, 0);
"""
X = Column("", "x", Type.DOUBLE)
ROWS = Frame(1, 1, 600 * SECOND)


def made(sql: str) -> Query:
    return catalog_of(STREAMS, f"CREATE ALERT q AS {sql}").alerts["q"].query


def functions(query: Query) -> list[WindowFunction]:
    return [one for stream in query.watched for one in stream.watches if isinstance(one, WindowFunction)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("lag(x) OVER w", WindowFunction("lag", X, ROWS, Type.DOUBLE)),
        ("lag(x, 3) OVER w", WindowFunction("lag", X, Frame(3, 3, 600 * SECOND), Type.DOUBLE)),
        ("lag(x, 1, 0) OVER w", WindowFunction("lag", X, ROWS, Type.DOUBLE, Literal(0.0, Type.DOUBLE))),
        ("lag(room) OVER w", WindowFunction("lag", Column("", "room", Type.VARCHAR), ROWS, Type.VARCHAR)),
        (
            "avg(x) OVER (w ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING)",
            WindowFunction("avg", X, Frame(5, 1, 600 * SECOND), Type.DOUBLE),
        ),
        (
            "stddev(x) OVER (w ROWS 5 PRECEDING)",
            WindowFunction("stddev_samp", X, Frame(5, 0, 600 * SECOND), Type.DOUBLE),
        ),
        (
            "count(*) OVER (w RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW)",
            WindowFunction("count", Literal(True, Type.BOOLEAN), Frame(None, 0, 60 * SECOND), Type.BIGINT),
        ),
        (
            "max(x) OVER (w RANGE '90 seconds' PRECEDING)",
            WindowFunction("max", X, Frame(None, 0, 90 * SECOND), Type.DOUBLE),
        ),
        (
            "sum(n) OVER (w ROWS CURRENT ROW)",
            WindowFunction("sum", Column("", "n", Type.INT), Frame(0, 0, 600 * SECOND), Type.BIGINT),
        ),
        (
            "bool_or(open) OVER (w ROWS 2 PRECEDING)",
            WindowFunction("max", Column("", "open", Type.BOOLEAN), Frame(2, 0, 600 * SECOND), Type.BOOLEAN),
        ),
    ],
)
def test_a_call_is_a_column_of_a_watched_stream(call: str, expected: WindowFunction) -> None:
    query = made(f"SELECT a.ts, {call} AS y FROM air a WINDOW w AS (PARTITION BY room ORDER BY ts)")
    assert functions(query) == [expected]
    (watched,) = query.watched
    assert watched.base == "air" and watched.name.startswith("air_over_")
    assert query.sources[0].stream == watched.name
    assert query.select[1].expr == Column("a", expected.column.name, expected.type)
    assert watched.column(expected.column.name) is not None
    assert [column.name for column in watched.recorded_columns] == ["room", "ts", "x", "n", "open"]


def test_a_filter_makes_other_readings_null() -> None:
    over = "(PARTITION BY room ORDER BY ts ROWS 5 PRECEDING)"
    query = made(f"SELECT count(*) FILTER (WHERE open) OVER {over} AS y FROM air")
    (one,) = functions(query)
    assert to_sql(one.value) == "CASE WHEN open THEN TRUE END"
    assert window_text(one) == (
        "count(CASE WHEN open THEN TRUE END) OVER (… ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"
    )


def test_a_stream_without_key_is_one_series() -> None:
    (one,) = functions(made("SELECT v - lag(v) OVER (ORDER BY ts) AS y FROM wind"))
    assert one.frame.span == 3600 * SECOND  # the default


def test_the_spellings_of_other_systems_mean_the_same() -> None:
    over = "lag(x) OVER (PARTITION BY room ORDER BY ts)"
    rows = [
        made(f"SELECT room, x - {over} AS rise FROM air WHERE x - {over} > 5"),
        made(f"SELECT room, x - {over} AS rise FROM air QUALIFY x - {over} > 5"),
        made(f"SELECT room, x - {over} AS rise FROM air QUALIFY rise > 5"),
        made(
            f"SELECT room, x - before AS rise FROM (SELECT *, {over} AS before FROM air) WHERE x - before > 5"
        ),
        made(f"WITH a AS (SELECT *, {over} AS y FROM air) SELECT room, x - y AS rise FROM a WHERE x - y > 5"),
    ]
    for query in rows:
        assert [one.name for one in query.watched] == [one.name for one in rows[0].watched]
        assert [to_sql(one.expr, qualify=False) for one in query.conjuncts] == [
            to_sql(one.expr, qualify=False) for one in rows[0].conjuncts
        ]
        assert [one.name for one in query.select] == ["room", "rise"]


def test_similar_and_window_functions_share_a_watched_stream() -> None:
    query = made(
        "SELECT room, similarity(x, 'dip', 0.1) AS d FROM air"
        " WHERE similar(x, 'dip', 0.1) AND x > lag(x) OVER (PARTITION BY room ORDER BY ts)"
    )
    (watched,) = query.watched
    assert len(watched.watches) == 2


def test_a_window_function_over_a_subquery_without_conditions_is_over_its_stream() -> None:
    query = made(
        "WITH a AS (SELECT room AS place, ts AS at, x * 2 AS y, lag(n) OVER (PARTITION BY room ORDER BY ts)"
        " AS m FROM air) SELECT place, y - lag(y) OVER (PARTITION BY place ORDER BY at) AS rise, m FROM a"
    )
    (watched,) = query.watched
    assert watched.base == "air"
    assert sorted(to_sql(one.value) for one in functions(query)) == ["n", "x * 2"]


def test_conditions_on_keys_may_stand_before_a_window_function() -> None:
    over = "lag(x) OVER (PARTITION BY room ORDER BY ts)"
    query = made(f"SELECT room, {over} AS before FROM air WHERE room <> 'cellar' AND room LIKE 'a%'")
    assert len(query.conjuncts) == 2


@pytest.mark.parametrize(
    ("call", "domain"),
    [
        ("lag(x) OVER w", "{} >= 0 AND {} <= 10"),
        ("lag(x, 1, -1) OVER w", "{} >= 0 AND {} <= 10 OR {} = -1"),
        ("lag(x, 1, n) OVER w", None),
        ("lag(x + 1) OVER w", None),
        ("max(x) OVER (w ROWS 2 PRECEDING)", "{} >= 0 AND {} <= 10"),
        ("avg(x) OVER (w ROWS 2 PRECEDING)", "{} >= 0 AND {} <= 10"),
        ("avg(n) OVER (w ROWS 2 PRECEDING)", None),
        ("stddev(n) OVER (w ROWS 2 PRECEDING)", "{} >= 0"),
        ("count(n) OVER (w ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)", "{} >= 0 AND {} <= 3"),
        ("count(n) OVER (w RANGE INTERVAL '1' MINUTE PRECEDING)", "{} >= 0"),
    ],
)
def test_columns_have_domains(call: str, domain: str | None) -> None:
    query = made(f"SELECT {call} AS y FROM air WINDOW w AS (PARTITION BY room ORDER BY ts)")
    (one,) = functions(query)
    definition = query.watched[0].column(one.column.name)
    assert definition is not None
    found = None if definition.check is None else to_sql(definition.check).replace(".0", "")
    name = to_sql(one.column)
    assert found == (None if domain is None else domain.replace("{}", name))


def test_rows_and_range_are_also_names() -> None:
    catalog = catalog_of(
        "CREATE STREAM rows (range DOUBLE KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);"
        "CREATE FUNCTION range(rows DOUBLE) RETURNS DOUBLE AS rows * 2;"
        "CREATE ALERT q AS SELECT rows.range, range(range) AS rows FROM rows WHERE range > 1;"
    )
    assert [one.name for one in catalog.alerts["q"].query.select] == ["range", "rows"]

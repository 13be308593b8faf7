"""GROUP BY: a column of the streams comes before a name of AS; a number stands for a column of SELECT."""

from __future__ import annotations

import pytest

from tamis.errors import SqlErrors
from tamis.expressions.nodes import Expr
from tamis.expressions.sql_text import to_sql
from tamis.query.computed_columns import meaning
from tamis.query.model import WindowGroupBy
from tamis.query.parse import catalog_of

STREAM = "CREATE STREAM s (k VARCHAR, ts TIMESTAMP, n INT, WATERMARK FOR ts AS ts);"


def grouped(select: str, by: str) -> list[str]:
    windows = "TUMBLE(s, ts, INTERVAL '1' MINUTE)"
    sql = f"CREATE ALERT q AS SELECT {select}, window_end, count(*) AS c FROM {windows}"
    query = catalog_of(f"{STREAM}{sql} GROUP BY {by}, window_end;").alerts["q"].query
    assert isinstance(query, WindowGroupBy)
    meant: list[Expr] = [meaning(one, query) for one in query.grouping.by]
    return [to_sql(one, qualify=False) for one in meant]


def test_a_column_of_the_stream_comes_first() -> None:
    assert grouped("upper(k) AS k", "k") == ["k", "window_end"]


def test_a_name_that_no_stream_has_is_that_of_select() -> None:
    assert grouped("upper(k) AS name", "name") == ["upper(k)", "window_end"]


def test_a_number_is_a_column_of_select() -> None:
    assert grouped("upper(k) AS k", "1") == ["upper(k)", "window_end"]


def test_a_hidden_expression_must_be_grouped() -> None:
    with pytest.raises(SqlErrors, match=r"'s\.n' must be in GROUP BY or inside an aggregate"):
        grouped("n % 2 AS k", "k")

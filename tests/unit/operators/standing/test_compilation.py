"""Compilation of standing queries: queries that aren't standing, and states that don't fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.operators import standing_evaluator

from tamis.errors import InputError, RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.build import operator
from tamis.planning.physical.lowering import standing_node

SQL = """
CREATE STREAM s (a INT, v VARCHAR);
CREATE STREAM timed (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE ALERT small AS SELECT DISTINCT a, v FROM s WHERE a BETWEEN 1 AND 3 AND v = 'x';
CREATE ALERT totals AS SELECT a, count(*) AS n FROM s WHERE a BETWEEN 1 AND 3 GROUP BY a;
CREATE ALERT join_by_time AS SELECT l.a FROM timed l, timed r WHERE l.ts = r.ts AND l.a = r.a;
"""


def test_a_query_is_found_by_its_name() -> None:
    with pytest.raises(InputError, match="no query 'large'"):
        standing_evaluator(SQL, "large")
    with pytest.raises(InputError, match="'join_by_time' is a join by time"):
        standing_evaluator(SQL, "join_by_time")
    assert standing_evaluator(SQL, "small").streams == {"s"}


def test_a_state_goes_on_only_in_the_query_that_it_is_of() -> None:
    batch = {"a": Vector.from_list([1, 9, 1], Type.INT), "v": Vector.from_list(["x", "x", "x"], Type.VARCHAR)}
    query = standing_evaluator(SQL, "small")
    found = query.take("s", batch, 3)
    assert found.completed.tolist() == [0]
    again = standing_evaluator(SQL, "small")
    again.load(query.dump())
    assert (again.entries(), len(again.take("s", batch, 3))) == (1, 0)
    with pytest.raises(RefusedError, match="of another query"):
        standing_evaluator(SQL, "totals").load(query.dump())
    with pytest.raises(RefusedError, match="version 1, not 2"):
        standing_evaluator(SQL, "small").load(query.dump().replace(b'"version":2', b'"version":1'))


def test_without_time_nothing_follows_from_a_watermark() -> None:
    assert len(standing_evaluator(SQL, "small").advance("s", 5)) == 0
    assert len(standing_evaluator(SQL, "totals").advance("s", 5)) == 0


@pytest.mark.parametrize(
    "alert",
    [
        "SELECT s.a FROM s, r WHERE s.a = r.a",
        "SELECT window_end, count(*) AS n FROM TUMBLE(timed, ts, INTERVAL '1' MINUTE) t JOIN r ON t.a = r.a"
        " GROUP BY window_end",
    ],
)
def test_a_table_must_have_the_rows_with_which_its_query_was_proven(alert: str, tmp_path: Path) -> None:
    """The limits of its values are part of the proof."""
    file = tmp_path / "r.csv"
    file.write_text("a\n1\n2\n")
    sql = f"{SQL} CREATE TABLE r (a INT) WITH (path = '{file}'); CREATE ALERT q AS {alert};"
    node = standing_node(sql, "q")
    assert operator(node).streams <= {"s", "timed"}
    file.write_text("a\n1\n3\n")
    with pytest.raises(RefusedError, match="the file has other rows than those"):
        operator(node)
    operator(standing_node(sql, "q"))

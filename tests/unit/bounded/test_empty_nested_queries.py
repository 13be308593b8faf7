"""Bounds of queries over rows of aggregates that never have a row. Their inner queries keep tuples."""

from __future__ import annotations

from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

SQL = """
CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 3, rate = '1/s', max_stall = '4 s', max_ahead = '0');
CREATE STREAM m AS SELECT k, window_end AS e, avg(x) AS x FROM TUMBLE(s, ts, INTERVAL '2' SECOND)
  GROUP BY k, window_end;
"""


def test_inner_queries_count_beside_a_contradiction() -> None:
    known = explain(catalog_of(f"{SQL} CREATE ALERT q AS SELECT k, e FROM m WHERE x > 1;"), "q").memory
    never = explain(
        catalog_of(f"{SQL} CREATE ALERT q AS SELECT k, e FROM m WHERE x > 1 AND x < 0;"), "q"
    ).memory
    assert "never has a row" in never.reason
    assert never.verdict == "bounded"
    assert never.bound and known.bound and never.bound <= known.bound

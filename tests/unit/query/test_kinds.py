"""Each query is of the kind that its streams and its clauses make it."""

from __future__ import annotations

from typing import get_args

import pytest

from tamis.query.model import (
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
    all_queries,
    selects_of,
)
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, v INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM t (k VARCHAR KEY, ts TIMESTAMP, v INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM n (k VARCHAR KEY, v INT);
CREATE TABLE r (k VARCHAR, v INT) WITH (path = 'r.csv');
"""
MINUTE = "INTERVAL '1' MINUTE"
GROUPED = f"SELECT k, window_end, count(*) AS c FROM TUMBLE(s, ts, {MINUTE}) GROUP BY k, window_end"
KINDS: dict[str, type[Query]] = {
    "SELECT s.k FROM s WHERE v > 3": JoinByTime,
    f"SELECT s.k FROM s JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts AND s.ts + {MINUTE}": JoinByTime,
    f"SELECT s.k FROM s WHERE NO READING FOR {MINUTE}": JoinByTime,
    "SELECT s.k, t.v FROM s ASOF JOIN t ON s.k = t.k AND s.ts >= t.ts": LatestValueJoin,
    GROUPED: WindowGroupBy,
    f"SELECT k, window_end, count(*) AS c FROM SESSION(s, ts, {MINUTE}) GROUP BY k, window_end": (
        SessionGroupBy
    ),
    "SELECT DISTINCT k FROM n": TimelessSelect,
    "SELECT k, max(v) AS m FROM n GROUP BY k": TimelessGroupBy,
    "SELECT k FROM n UNION SELECT k FROM n WHERE v > 3": TimelessUnion,
    "SELECT DISTINCT k FROM s": ApplicationTimeSelect,
    "SELECT s.k FROM s JOIN n ON s.k = n.k": ApplicationTimeSelect,
    "SELECT s.k FROM s JOIN r ON s.k = r.k": ApplicationTimeSelect,
    "SELECT k FROM n UNION SELECT k FROM s": ApplicationTimeUnion,
    f"WITH m AS ({GROUPED}) SELECT m.k FROM m WHERE c > 3": NestedQuery,
}


def query(sql: str) -> Query:
    return catalog_of(f"{STREAMS} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};").alerts["q"].query


@pytest.mark.parametrize(("sql", "kind"), KINDS.items())
def test_the_kind_of_a_query(sql: str, kind: type[Query]) -> None:
    assert type(query(sql)) is kind


def test_every_kind_is_tried() -> None:
    assert set(KINDS.values()) == set(get_args(Query))


def test_members_of_a_union_are_evaluated_in_the_same_way() -> None:
    members = selects_of(query("SELECT k FROM n UNION SELECT k FROM s"))
    assert [type(member) for member in members] == [ApplicationTimeSelect, ApplicationTimeSelect]
    assert all(isinstance(member, ApplicationTimeSelect) and member.distinct for member in members)


def test_a_join_in_windows_is_the_stream_of_aggregates() -> None:
    joined = f"TUMBLE(s, ts, {MINUTE}) a JOIN t ON a.k = t.k AND t.ts BETWEEN a.ts AND a.ts + {MINUTE}"
    nested = query(f"SELECT a.k, window_end, count(*) AS c FROM {joined} GROUP BY a.k, window_end")
    assert [type(one) for one in all_queries(nested)] == [JoinByTime, WindowGroupBy]
    assert [one.timed_by for one in all_queries(nested) if isinstance(one, JoinByTime)] == ["a"]

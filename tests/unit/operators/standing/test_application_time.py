"""A query in application time as a standing query: watermarks, late tuples, and times of rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators import standing_evaluator

from tamis.errors import RefusedError
from tamis.expressions.vectors import Vector
from tamis.operators.contract import CountsLate, Rows, StandingEvaluator

SQL = """
CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM t (b INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE ALERT q AS SELECT s.a, t.b FROM s, t WHERE s.ts > t.ts AND t.b IN (1, 2);
CREATE ALERT other AS SELECT DISTINCT t.b FROM s, t WHERE s.ts > t.ts AND t.b IN (1, 2);
"""


def _take(query: StandingEvaluator, stream: str, *tuples: tuple[int, int]) -> Rows:
    column = {"s": "a", "t": "b"}[stream]
    values, times = (np.array(one, np.int64) for one in zip(*tuples, strict=True))
    return query.take(stream, {column: Vector(values), "ts": Vector(times)}, len(tuples))


def _rows(found: Rows) -> list[tuple[object, ...]]:
    return list(zip(*(vector.to_list() for vector in found.columns.values()), strict=True))


def test_tuples_wait_for_the_watermarks_of_all_streams_and_are_taken_in_order() -> None:
    query = standing_evaluator(SQL, "q")
    assert not len(_take(query, "s", (7, 20), (8, 10)))
    assert not len(query.advance("s", 30))
    assert not len(_take(query, "t", (2, 15), (1, 5), (3, 1)))
    assert query.entries() == 4  # b = 3 joins nothing
    found = query.advance("t", 18)
    assert _rows(found) == [(8, 1)]
    assert (found.completed.tolist(), found.times is not None and found.times.tolist()) == ([-1], [10])
    assert sorted(_rows(query.advance("t", 30))) == [(7, 1), (7, 2)]
    assert query.entries() == 2


def test_a_tuple_behind_all_watermarks_is_late() -> None:
    query = standing_evaluator(SQL, "q")
    for stream in "st":
        query.advance(stream, 10)
    query.advance("s", 20)
    _take(query, "s", (7, 9), (7, 12))  # 12 is behind its own watermark, and can still be taken in order
    assert isinstance(query, CountsLate)
    assert query.late == 1
    assert query.entries() == 1


def test_a_state_is_taken_by_the_same_query_only() -> None:
    query = standing_evaluator(SQL, "q")
    _take(query, "t", (1, 5), (2, 6))
    query.advance("t", 6)
    query.advance("s", 6)
    state = query.dump()
    again = standing_evaluator(SQL, "q")
    again.load(state)
    assert again.entries() == query.entries() == 2
    _take(again, "s", (4, 7))
    again.advance("s", 9)
    assert sorted(_rows(again.advance("t", 9))) == [(4, 1), (4, 2)]
    with pytest.raises(RefusedError):
        standing_evaluator(SQL, "other").load(state)

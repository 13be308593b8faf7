"""Values in the keys of alarms that are times."""

from __future__ import annotations

from tamis.expressions.nodes import Literal, Type
from tamis.plan.model import Definition, Input, Plan, StandingQuery, StreamColumn, StreamPlan
from tamis.plan.time_columns import key_times
from tamis.planning.physical.lowering import standing_node

SQL = """
CREATE STREAM a (
  site VARCHAR KEY, batch TIMESTAMP, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
);
CREATE ALERT counted AS SELECT site, batch AS begin, count(*) AS n
FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) GROUP BY site, batch, window_start;
"""


def test_of_a_definition_they_are_those_of_the_types_of_its_streams_columns() -> None:
    types = {"k": Type.VARCHAR, "day": Type.TIMESTAMP, "n": Type.INT}
    columns = tuple(StreamColumn(name, kind, False, None) for name, kind in types.items())
    other = StreamPlan("b", (StreamColumn("k", Type.TIMESTAMP, False, None),), "ts", 0, None, None, 9, ())
    stream = StreamPlan("a", columns, "ts", 0, None, None, 9, ())
    source = Input("x", "a", "t", "ts", ("k", "day", "n"), None, 0)
    alert = Definition("hot", 1, (source,), (), (), Literal(True, Type.BOOLEAN), ())
    assert key_times(alert, Plan(1, 1, (other, stream), (alert,))) == (1,)
    assert key_times(Definition("none", 1, (), (), (), None, ()), Plan(1, 1)) == ()


def test_of_a_standing_query_they_are_those_of_its_rows() -> None:
    source = Input("", "a", "t", "ts", ("site",), None, 0)
    query = StandingQuery("counted", 2, standing_node(SQL, "counted"), (source,), ("site", "begin"), None)
    assert key_times(query, Plan(2, 1, standing=(query,))) == (1,)

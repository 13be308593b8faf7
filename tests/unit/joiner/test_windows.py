"""Aggregates of windows in the joiner's core: rows on the frontier, late tuples, repeated tuples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
from tests.unit.joiner.test_core import State

from tamis.declarations.file_access import NO_ACCESS
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.messaging import topics
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Input, StandingQuery
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core.alarms import Numbering, standing_alarms
from tamis_joiner.core.group import Group
from tamis_joiner.core.query_progress import QueryProgress
from tamis_joiner.core.records.envelopes import Records, split_plans
from tamis_joiner.core.records.tuple_columns import TupleColumns
from tamis_joiner.core.running_query import (
    ArrivedTuples,
    Found,
    RunningQuery,
)

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 10, max_stall = '30 us', max_ahead = '0');
CREATE STREAM warm AS SELECT station, ts, temp FROM air WHERE temp > 0;
CREATE ALERT mean AS SELECT window_end, station, avg(temp) AS mean
FROM HOP(warm, ts, INTERVAL '10 us', INTERVAL '20 us') GROUP BY station, window_end;
"""


def _query() -> StandingQuery:
    (query,) = first_plan(catalog_of(SQL)).standing
    return query


def _arrived(source: Input, rows: list[tuple[str, int, float]], first: int) -> ArrivedTuples:
    """Tuples of one shard from the place `first` on."""
    stations, times, temps = zip(*rows, strict=True)
    count = len(rows)
    columns = {
        "station": Vector.from_list(stations, Type.VARCHAR),
        "ts": Vector.from_list(times, Type.TIMESTAMP),
        "temp": Vector.from_list(temps, Type.DOUBLE),
    }
    tuples = TupleColumns(
        np.array(times, np.int64),
        np.ones(count, np.int64),
        np.zeros(count, np.bool_),
        np.arange(count),
        columns,
        np.array(["shard"] * count, np.object_),
        np.arange(first, first + count),
    )
    return ArrivedTuples(source.topic, tuples, Dispatch([source.filter]))


def _alarms(query: StandingQuery, found: Found) -> list[tuple[int, dict[str, object]]]:
    assert found is not None
    rows, times, came = found
    records = [
        orjson.loads(value) for _, value in standing_alarms(query, Numbering(1, 0, 0), rows, times, came)
    ]
    return [(record["event_time"], record["row"]) for record in records]


def test_a_number_that_comes_again_makes_another_id_unless_the_row_is_the_same() -> None:
    def ids(*temps: float) -> list[str]:
        query = _query()
        running = RunningQuery(query, QueryProgress(), NO_ACCESS)
        rows = [("p", 3 + 20 * at, temp) for at, temp in enumerate(temps)]
        running.take(query.inputs[0], _arrived(query.inputs[0], rows, 0))
        found = running.advance(query.inputs[0], 32)
        assert found is not None
        alarms = standing_alarms(query, Numbering(1, 0, 0), *found)
        return [orjson.loads(value)["id"] for _, value in alarms]

    assert ids(1.0, 2.0) == ids(1.0, 2.0)
    assert len(ids(1.0, 2.0)) == len({*ids(1.0, 2.0)}) == 3
    # A joiner without its checkpoint counts from 0 again: the first window is another one now.
    assert not {*ids(1.0, 2.0)} & {*ids(7.0, 8.0)}


def test_the_plan_partitions_by_the_group_and_says_the_bound() -> None:
    query = _query()
    (source,) = query.inputs
    assert source.partition_key == ("station",)
    assert query.key == ("station",)
    assert query.bound == 10 * 5  # panes of 10 us that begin in 20 + 30 us
    assert source.filter is not None


def test_rows_come_on_the_frontier_and_late_tuples_count_where_they_can() -> None:
    query = _query()
    (source,) = query.inputs
    running = RunningQuery(query, QueryProgress(), NO_ACCESS)
    running.take(source, _arrived(source, [("p", 3, 1.0), ("q", 12, 5.0), ("p", 21, -1.0)], 0))
    found = running.advance(source, 12)
    assert _alarms(query, found) == [(9, {"window_end": 10, "station": "p", "mean": 1.0})]
    again = RunningQuery(query, QueryProgress.from_json(running.progress.to_json()), NO_ACCESS)
    again.load(running.dump())
    # The first ones come again; the last one is late, and counts in the window that ends at 20.
    again.take(source, _arrived(source, [("q", 12, 5.0), ("p", 21, -1.0), ("p", 5, 3.0)], 1))
    assert again.entries == 2
    assert _alarms(query, again.advance(source, 40)) == [
        (19, {"window_end": 20, "station": "p", "mean": 2.0}),
        (19, {"window_end": 20, "station": "q", "mean": 5.0}),
        (29, {"window_end": 30, "station": "q", "mean": 5.0}),
    ]
    assert again.advance(source, 40) is None
    assert again.entries == 0


def test_a_query_goes_on_where_a_later_plan_writes_its_filter_otherwise() -> None:
    """As a later release may: of the query's version, with the meaning that it had."""
    first = replace(first_plan(catalog_of(SQL)), partitions=1)
    (query,) = first.standing
    (source,) = query.inputs
    column = Column("", "temp", Type.DOUBLE)
    other = Call("<", (Literal(0.0, Type.DOUBLE), column), Type.BOOLEAN)
    rewritten = replace(query, inputs=(replace(source, filter=other),))
    state = State()
    counted = []
    for batch, plan in enumerate((first, replace(first, version=first.version + 1, standing=(rewritten,)))):
        value = orjson.dumps(
            {
                "station": "p",
                "ts": batch,
                "temp": 1.0 - 2 * batch,
                "_": {"shard": "e/air", "plan": first.version, "activation": 0, "place": batch},
            }
        )
        records = [
            Records(topic, 0, [log], np.array([batch]), np.array([0]))
            for topic, log in ((topics.PLANS, encode_plan(plan)), (source.topic, value))
        ]
        group = Group.load(0, 1, state)
        group.process(*split_plans(records), state, now=batch, token=str(batch))
        counted.append(group._standing.entries())
    assert counted == [{f"mean@{query.version}": 1}] * 2

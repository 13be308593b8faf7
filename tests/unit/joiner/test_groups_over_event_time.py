"""Groups without windows over a stream with event time: late tuples count, and watermarks do nothing.

Mutations that these tests catch: late tuples are dropped by the edge or behind the joiner's frontier; rows
have the time of arrival, or of the greatest event time; frontiers change the state.
"""

from __future__ import annotations

import orjson
from tests.fixtures.in_process_fleet import InProcessFleet, plan_of
from tests.unit.joiner.test_windows import _alarms, _arrived

from tamis.declarations.file_access import NO_ACCESS
from tamis.plan.model import StandingQuery
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core.query_progress import QueryProgress
from tamis_joiner.core.running_query import RunningQuery

SECOND = 1_000_000
STREAM = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
WITH (keys = 10, rate = '1/s');
"""
ALERTS = """
CREATE ALERT total AS SELECT station, count(*) AS n, max(ts) AS latest FROM air WHERE temp > 0
GROUP BY station;
CREATE ALERT minutes WITH (edge = 'raw') AS SELECT station, window_end, count(*) AS n
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY station, window_end;
"""


def _query() -> StandingQuery:
    (query,) = (one for one in first_plan(catalog_of(STREAM + ALERTS)).standing if one.alert == "total")
    return query


def test_the_bound_is_the_number_of_groups_and_the_key_partitions() -> None:
    query = _query()
    (source,) = query.inputs
    assert (query.bound, query.key, source.partition_key, source.time) == (
        10,
        ("station",),
        ("station",),
        "ts",
    )


def test_late_tuples_count_once_and_give_rows_of_their_own_event_time() -> None:
    query = _query()
    (source,) = query.inputs
    running = RunningQuery(query, QueryProgress(), NO_ACCESS)
    found = running.take(source, _arrived(source, [("p", 50, 1.0), ("p", 20, -1.0), ("p", 30, 2.0)], 0))
    assert _alarms(query, found) == [
        (50, {"station": "p", "n": 1, "latest": 50}),
        (30, {"station": "p", "n": 2, "latest": 50}),
    ]
    assert running.advance(source, 1_000) is None
    again = RunningQuery(query, QueryProgress.from_json(running.progress.to_json()), NO_ACCESS)
    again.load(running.dump())
    # The last one comes again; those after it are far behind the frontier.
    found = again.take(source, _arrived(source, [("p", 30, 2.0), ("p", 7, 1.0), ("q", 8, 1.0)], 2))
    assert _alarms(query, found) == [
        (7, {"station": "p", "n": 3, "latest": 50}),
        (8, {"station": "q", "n": 1, "latest": 8}),
    ]
    assert (again.entries, again.late) == (2, 0)


def test_a_frontier_changes_nothing_that_is_written() -> None:
    query = _query()
    (source,) = query.inputs
    running = RunningQuery(query, QueryProgress(), NO_ACCESS)
    running.take(source, _arrived(source, [("p", 50, 1.0)], 0))
    running.dump()
    before = running.progress.to_json()
    assert running.advance(source, 49) is None and running.advance(source, 2**62) is None
    assert not running.changed
    assert running.progress.to_json() == before


def _readings(*placed: tuple[str, int, float]) -> list[dict[str, object]]:
    return [{"station": k, "ts": ts * SECOND, "temp": temp} for k, ts, temp in placed]


def test_edge_and_joiner_count_what_is_late_for_windows() -> None:
    fleet = InProcessFleet(plan_of(STREAM, ALERTS))
    fleet.send("air", _readings(("p", 10, 1.0), ("q", 200, 1.0)), now=300 * SECOND)
    # The window of the first minute has ended everywhere.
    fleet.send("air", _readings(("p", 11, 1.0), ("p", 201, 1.0), ("p", 12, -1.0)), now=301 * SECOND)
    fleet.restart()
    fleet.send("air", _readings(("q", 13, 1.0)), now=302 * SECOND)
    late = [orjson.loads(value) for _, value in fleet.published if b'"late":true' in value]
    assert [one["ts"] // SECOND for one in late] == [11, 12, 13]
    rows = sorted(row for (alert, _), row in fleet.rows.items() if alert == "total")
    assert rows == [
        ("p", 1, 10 * SECOND),
        ("p", 2, 11 * SECOND),
        ("p", 3, 201 * SECOND),
        ("q", 1, 200 * SECOND),
        ("q", 2, 200 * SECOND),
    ]
    assert fleet.last_frontier is not None
    assert fleet.last_frontier.missed == {"minutes": 3}
    assert not fleet.dead

"""Plans and states of aggregates over windows with tables, over joins, and over rows of aggregates."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.operators import standing_evaluator

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector
from tamis.operators.build import operator
from tamis.operators.contract import CountsLate
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.planning.queries.standing_queries import judged
from tamis.query.catalog import dependents
from tamis.query.parse import catalog_of

_ROWS = "station,region,target\np,north,1.5\nq,south,2\n"


def _sql(directory: Path, by: str) -> str:
    (directory / "sites.csv").write_text(_ROWS)
    return f"""
        CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts);
        CREATE TABLE sites (station VARCHAR, region VARCHAR, target DOUBLE)
          WITH (path = '{directory / "sites.csv"}');
        CREATE ALERT above AS SELECT {by}, window_end, avg(a.temp - s.target) AS above
        FROM TUMBLE(air, ts, INTERVAL '10 us') a JOIN sites s ON a.station = s.station
        GROUP BY {by}, window_end;
    """


@pytest.mark.parametrize(
    ("by", "partition", "key"),
    [
        ("a.station", ("station",), "station"),
        ("s.station", ("station",), "station"),
        ("s.region", (), "region"),
    ],
)
def test_partitions(tmp_path: Path, by: str, partition: tuple[str, ...], key: str) -> None:
    catalog = catalog_of(_sql(tmp_path, by))
    layout = judged(catalog.alerts["above"], catalog).layout
    (feed,) = layout.feeds
    assert (feed.partition_key, layout.key) == (partition, (key,))
    assert {*feed.partition_key, *feed.read} == {"station", "temp"}


def test_a_state_belongs_to_the_rows_of_the_table(tmp_path: Path) -> None:
    sql = _sql(tmp_path, "s.region")
    query = standing_evaluator(sql, "above")
    batch = {
        "station": Vector.from_list(["p", "q", "x"], Type.VARCHAR),
        "ts": Vector.from_list([1, 2, 3], Type.TIMESTAMP),
        "temp": Vector.from_list([2.0, 4.0, 9.0], Type.DOUBLE),
    }
    query.take("air", batch, 3)
    again = standing_evaluator(sql, "above")
    again.load(query.dump())
    assert again.entries() == 2
    rows = again.advance("air", 10)
    assert [rows.columns[name].to_list() for name in ("region", "above")] == [["north", "south"], [0.5, 2.0]]
    (tmp_path / "sites.csv").write_text(_ROWS.replace("1.5", "1.25"))
    with pytest.raises(RefusedError, match="another query"):
        standing_evaluator(sql, "above").load(query.dump())


MEANS = """
    CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
      WITH (keys = 10, rate = '1/s', max_stall = '1 s', max_ahead = '0');
    CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
      WITH (keys = 10, rate = '1/s', max_stall = '1 s', max_ahead = '0');
    CREATE STREAM means AS SELECT {by}, window_end, avg(temp) AS mean
      FROM TUMBLE(air, ts, INTERVAL '10 s') GROUP BY {by}, window_end;
"""
_JOIN = (
    "JOIN means m ON s.station = m.station AND s.ts BETWEEN m.window_end AND m.window_end + INTERVAL '5 s'"
)


@pytest.mark.parametrize(
    ("by", "sql", "partition", "bound"),
    [
        # Two panes of ten groups, and the rows of a second that wait for the watermark.
        ("station", "SELECT station, mean FROM means WHERE mean > 3", ("station",), 20 + 10),
        # In addition two panes of windows of a minute.
        (
            "station",
            "SELECT station, max(mean) AS m FROM TUMBLE(means, window_end, INTERVAL '1' MINUTE)"
            " GROUP BY station, window_end",
            ("station",),
            20 + 20,
        ),
        (
            "station",
            "SELECT max(mean) AS m FROM TUMBLE(means, window_end, INTERVAL '1' MINUTE) GROUP BY window_end",
            (),
            20 + 2,
        ),
        ("station", f"SELECT s.station, s.temp, m.mean FROM surface s {_JOIN}", ("station",), None),
        ("temp", "SELECT temp, mean FROM means WHERE mean > 3", (), None),
    ],
)
def test_plans_over_rows_of_aggregates(
    by: str, sql: str, partition: tuple[str, ...], bound: int | None
) -> None:
    catalog = catalog_of(f"{MEANS.format(by=by)} CREATE ALERT q AS {sql};")
    found = judged(catalog.alerts["q"], catalog)
    assert found.memory.bound is not None
    assert bound is None or found.memory.bound == bound
    assert {feed.stream.name for feed in found.layout.feeds} == (
        {"air", "surface"} if "surface" in sql else {"air"}
    )
    for feed in found.layout.feeds:
        assert feed.partition_key == partition
        assert {*feed.partition_key, *feed.read} == {"station", "temp"} - (
            {"station"} if by == "temp" else set()
        )
    # A joiner has only the statements of the plan.
    assert operator(found.node).streams == {feed.stream.name for feed in found.layout.feeds}


def test_a_stream_of_aggregates_has_users_and_no_topic() -> None:
    catalog = catalog_of(
        f"{MEANS.format(by='station')} CREATE STREAM warm AS SELECT * FROM means WHERE mean > 3;"
        " CREATE ALERT q AS SELECT station FROM warm;"
    )
    assert list(dependents(catalog, "stream", "means")) == ["stream 'warm'", "alert 'q'"]
    assert "stream 'means'" in list(dependents(catalog, "stream", "air"))
    plan = first_plan(catalog)
    (topic,) = plan.streams[0].topics
    assert topic.name.startswith("tamis.stream.air")
    assert [query.alert for query in plan.standing] == ["q"]
    assert catalog_of(
        f"{MEANS.format(by='station')} CREATE STREAM m2 AS SELECT * FROM means;"
    ).raw_streams.keys() == {
        "air",
        "surface",
    }


def test_the_state_of_nested_queries_belongs_to_them() -> None:
    sql = f"{MEANS.format(by='station')} CREATE ALERT q AS SELECT station FROM means WHERE mean > {{}};"
    query = standing_evaluator(sql.format(3), "q")
    batch = {
        "station": Vector.from_list(["p", "q"], Type.VARCHAR),
        "ts": Vector.from_list([1, 2], Type.TIMESTAMP),
        "temp": Vector.from_list([2.0, 4.0], Type.DOUBLE),
    }
    query.take("air", batch, 2)
    again = standing_evaluator(sql.format(3), "q")
    again.load(query.dump())
    assert again.entries() == 2
    rows = again.advance("air", 10_000_000)
    assert rows.columns["station"].to_list() == ["q"]
    assert rows.times is not None and rows.times.tolist() == [9_999_999]
    with pytest.raises(RefusedError, match="another query"):
        standing_evaluator(_MAXIMA, "q").load(query.dump())


_MAXIMA = MEANS.format(by="temp") + " CREATE ALERT q AS SELECT temp FROM means;"


def test_an_explanation_of_a_join_with_rows_of_aggregates_claims_no_unlimited_age() -> None:
    select = (
        "SELECT a.station FROM surface a JOIN means m ON a.station = m.station"
        " AND a.ts BETWEEN m.window_end AND m.window_end + INTERVAL '60 s' WHERE a.temp > m.mean"
    )
    catalog = catalog_of(MEANS.format(by="station"), f"CREATE ALERT q AS {select}")
    reasons = [one.reason for one in explain(catalog, "q").streams]
    assert reasons[-1] == "no omission: every tuple counts beside rows of aggregates"


_PAIRS = (
    "SELECT a.station, s.station AS other, a.ts, a.temp - s.temp AS d, a.temp FROM air a JOIN surface s"
    " ON {on} AND s.ts BETWEEN a.ts - INTERVAL '1 s' AND a.ts + INTERVAL '2 s' WHERE s.temp > 0"
)
_BY_STATION = f"WITH p AS ({_PAIRS.format(on='a.station = s.station')})"


@pytest.mark.parametrize(
    ("on", "by", "partition", "bound"),
    [
        # 10 keys with one tuple a second: those of air in 1 + 2 s, and those of surface in 1 + 2 + 1 s. One
        # window is open at a time.
        ("a.station = s.station", "station", ("station",), 10 * 4 + 10 * 5 + 10),
        ("a.station = s.station", "other", ("station",), 10 * 4 + 10 * 5 + 10),
        ("a.station = s.station", "station, other", ("station",), 10 * 4 + 10 * 5 + 10),
        ("a.temp = s.temp", "station, other", (), 10 * 4 + 10 * 5 + 100),
        # Each of the 100 tuples of a window joins at most four of surface.
        ("a.station = s.station", "d", (), 10 * 4 + 10 * 5 + 400),
        ("a.temp = s.temp", "d", (), 10 * 4 + 10 * 5 + 4_000),
    ],
)
def test_plans_of_joins_in_windows(on: str, by: str, partition: tuple[str, ...], bound: int) -> None:
    catalog = catalog_of(
        f"{MEANS.format(by='station')} CREATE ALERT q AS WITH p AS ({_PAIRS.format(on=on)})"
        f" SELECT {by}, window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10 s')"
        f" WHERE temp < 40 AND d < 9 GROUP BY {by}, window_end;"
    )
    found = judged(catalog.alerts["q"], catalog)
    assert found.memory.bound == bound
    air, surface = found.layout.feeds
    assert air.partition_key == surface.partition_key == partition
    assert [str(to_sql(feed.filter)) for feed in (air, surface) if feed.filter is not None] == [
        "temp < 40",
        "temp > 0",
    ]
    assert operator(found.node).streams == {"air", "surface"}


def test_what_waits_for_a_join_is_kept_in_its_state() -> None:
    sql = (
        f"{MEANS.format(by='station')} CREATE ALERT q AS {_BY_STATION} SELECT station, window_end,"
        " count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10 s') GROUP BY station, window_end;"
    )
    query = standing_evaluator(sql, "q")
    batch = {
        "station": Vector.from_list(["p", "q"], Type.VARCHAR),
        "ts": Vector.from_list([5_000_000, 5_000_001], Type.TIMESTAMP),
        "temp": Vector.from_list([2.0, 4.0], Type.DOUBLE),
    }
    query.take("air", batch, 2)
    query.take("surface", batch, 2)
    again = standing_evaluator(sql, "q")
    again.load(query.dump())
    assert again.entries() == 4
    # The tuples of air are decided when surface is two seconds later.
    assert not len(again.advance("air", 10_000_000))
    assert not len(again.advance("surface", 7_000_001))
    assert again.entries() == 1 + 2 + 1
    rows = again.advance("surface", 12_000_000)
    assert rows.columns["station"].to_list() == ["p", "q"]
    # They are late now.
    again.take("air", batch, 2)
    assert isinstance(again, CountsLate) and again.late == 2
    with pytest.raises(RefusedError, match="another query"):
        standing_evaluator(sql.replace("INTERVAL '2 s'", "INTERVAL '3 s'"), "q").load(query.dump())


def test_a_join_in_windows_that_contradicts_itself_is_refused() -> None:
    catalog = catalog_of(
        f"{MEANS.format(by='station')} CREATE ALERT q AS {_BY_STATION}"
        " SELECT window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10 s') WHERE temp > 3 AND temp < 2"
        " GROUP BY window_end;"
    )
    found = explain(catalog, "q")
    assert not found.accepted
    assert found.reason.endswith("so the query never has a row")


_ASIDE = (
    "SELECT {shown}, window_end, count(*) AS n, sum(s.temp * 2) AS double, max(a.temp * 2) AS own"
    " FROM {sources} AND s.ts BETWEEN a.ts - INTERVAL '1 s' AND a.ts + INTERVAL '2 s'"
    " WHERE s.temp > 0 AND a.temp < 40 GROUP BY {shown}, window_end"
)
_HOP = "HOP({}, ts, INTERVAL '5 s', INTERVAL '10 s')"


@pytest.mark.parametrize("shown", ["a.station", "s.station"])
@pytest.mark.parametrize(
    ("sources", "waiting"),
    [
        (f"{_HOP.format('air')} a JOIN surface s ON a.station = s.station", 10 * 4 + 10 * 5),
        # The tuples of surface are decided when air is a second later.
        (f"air a JOIN {_HOP.format('surface')} s ON a.station = s.station", 10 * 5 + 10 * 3),
    ],
)
def test_windows_of_one_stream_of_a_join(shown: str, sources: str, waiting: int) -> None:
    asked = _ASIDE.format(shown=shown, sources=sources)
    catalog = catalog_of(f"{MEANS.format(by='station')} CREATE ALERT q AS {asked};")
    found = judged(catalog.alerts["q"], catalog)
    assert found.memory.bound == waiting + 2 * 10
    assert [feed.partition_key for feed in found.layout.feeds] == [("station",), ("station",)]
    assert [feed.read for feed in found.layout.feeds] == [("temp",), ("temp",)]
    assert {str(to_sql(feed.filter)) for feed in found.layout.feeds if feed.filter is not None} == {
        "temp < 40",
        "temp > 0",
    }
    assert found.layout.key == ("station",)
    assert sum(one.most() for one in found.kept.values()) == found.memory.bound


def test_a_missing_equality_of_keys_is_told_for_a_join_in_windows() -> None:
    catalog = catalog_of(
        f"{MEANS.format(by='station')} CREATE ALERT q AS WITH p AS ({_PAIRS.format(on='a.ts <= s.ts')})"
        " SELECT window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10 s') GROUP BY window_end;"
    )
    (warning,) = explain(catalog, "q").warnings
    assert warning.startswith("no condition equates keys of a and s")


def test_tuples_of_a_stream_that_is_joined_with_itself_are_kept_twice() -> None:
    bound = "x.station = y.station AND y.ts BETWEEN x.ts AND x.ts + INTERVAL '9 s'"
    asked = f"SELECT x.ts FROM air x JOIN air y ON {bound}"
    catalog = catalog_of(
        f"{MEANS.format(by='station')} CREATE ALERT q AS WITH p AS ({asked})"
        " SELECT window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10 s') GROUP BY window_end;"
    )
    found = judged(catalog.alerts["q"], catalog)
    # The span is at most 1 + 9 s for each of the two, and one group is open.
    assert found.memory.bound == 2 * 10 * 11 + 1
    assert {name: one.most() for name, one in found.kept.items()} == {"air": 2 * 10 * 11 + 1}


def test_joined_windows_are_decided_when_they_have_ended() -> None:
    sql = f"""{MEANS.format(by="station")} CREATE ALERT q AS SELECT a.station, s.window_end, count(*) AS n
        FROM TUMBLE(air, ts, INTERVAL '10 s') a JOIN TUMBLE(surface, ts, INTERVAL '10 s') s
        ON a.station = s.station AND a.window_end = s.window_end GROUP BY a.station, s.window_end;"""
    catalog = catalog_of(sql)
    found = judged(catalog.alerts["q"], catalog)
    # 10 keys and one tuple a second: windows of just less than 10 s, before and after, and 1 s of stall.
    assert found.memory.bound == 10 * (10 + 1) + 10 * (20 + 1) + 10
    assert [feed.partition_key for feed in found.layout.feeds] == [("station",), ("station",)]
    query = operator(found.node)
    batch = {
        "station": Vector.from_list(["p", "p"], Type.VARCHAR),
        "ts": Vector.from_list([1_000_000, 12_000_000], Type.TIMESTAMP),
        "temp": Vector.from_list([2.0, 4.0], Type.DOUBLE),
    }
    for stream in ("air", "surface"):
        query.take(stream, batch, 2)
    assert not len(query.advance("air", 10_000_000))
    rows = query.advance("surface", 10_000_000)
    assert [vector.to_list() for vector in rows.columns.values()] == [["p"], [10_000_000], [1]]
    query.take("surface", batch, 2)
    assert isinstance(query, CountsLate) and query.late == 1

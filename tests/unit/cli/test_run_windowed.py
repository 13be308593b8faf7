"""`tamis explain`, `tamis run` and `tamis verify` for aggregates of windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from tests.operators import run_query

from tamis.cli import main
from tamis.expressions.vectors import Vector
from tamis.query.model import WindowGroupBy
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 10, max_stall = '10 seconds', max_ahead = '0');
CREATE STREAM warm AS SELECT station, ts, temp FROM air WHERE temp > 0;
CREATE ALERT mean AS
SELECT window_start, window_end, station, count(*) AS n, avg(temp) AS mean, max(ts) AS latest
FROM TUMBLE(warm, ts, INTERVAL '1' MINUTE)
GROUP BY window_start, window_end, station
HAVING count(*) > 1;
CREATE ALERT often AS
SELECT window_end, count(*) + 1 AS n
FROM HOP(air, ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE)
GROUP BY window_end;
"""
AIR = """station,ts,temp
p,2024-01-01T00:00:01Z,31
p,2024-01-01T00:00:03Z,35.5
q,2024-01-01T00:00:59Z,20
q,2024-01-01T00:01:03Z,33
q,2024-01-01T00:00:50Z,40
q,2024-01-01T00:01:04Z,-33
,2024-01-01T00:01:04Z,1
,2024-01-01T00:01:05Z,1.5
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    (tmp_path / "air.csv").write_text(AIR)
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, arguments)
    return found.exit_code, found.stdout, found.stderr


@pytest.mark.usefixtures("directory")
def test_a_row_for_each_window_and_group_that_holds() -> None:
    code, out, said = _run("run", "--as-arrived", "q.sql", "--query", "mean", "--input", "air=air.csv")
    assert code == 0
    assert out.splitlines() == [
        "window_start,window_end,station,n,mean,latest",
        "2024-01-01T00:00:00Z,2024-01-01T00:01:00Z,p,2,33.25,2024-01-01T00:00:03Z",
        "2024-01-01T00:01:00Z,2024-01-01T00:02:00Z,,2,1.25,2024-01-01T00:01:05Z",
    ]
    assert said.endswith("stream air: 1 tuple is missing in a window that had already ended\n")


@pytest.mark.usefixtures("directory")
def test_a_late_tuple_counts_in_the_windows_that_have_not_ended() -> None:
    code, out, _ = _run("run", "--as-arrived", "q.sql", "--query", "often", "--input", "air=air.csv")
    assert code == 0
    assert [line.split(",") for line in out.splitlines()[1:]] == [
        ["2024-01-01T00:00:30Z", "3"],
        ["2024-01-01T00:01:00Z", "4"],
        ["2024-01-01T00:01:30Z", "7"],
        ["2024-01-01T00:02:00Z", "5"],
    ]


def test_each_file_has_a_watermark_of_its_own(directory: Path) -> None:
    (directory / "more.csv").write_text("station,ts,temp\nq,2023-12-31T23:59:50Z,7\n")
    both = ("--input", "air=air.csv", "--input", "air=more.csv")
    code, out, said = _run("run", "--as-arrived", "q.sql", "--query", "often", *both)
    assert code == 0
    assert out.splitlines()[1] == "2024-01-01T00:00:00Z,2"
    assert "1 tuple is missing" in said


def test_no_tuples_no_rows(directory: Path) -> None:
    (directory / "air.csv").write_text("station,ts,temp\n")
    code, out, said = _run("run", "q.sql", "--query", "often", "--input", "air=air.csv")
    assert (code, out, said) == (0, "window_end,n\n", "")


@pytest.mark.usefixtures("directory")
def test_explain_says_the_bound_and_its_windows() -> None:
    code, out, _ = _run("explain", "q.sql", "--query", "mean", "--json")
    assert code == 0
    (found,) = orjson.loads(out)["queries"]
    assert found["memory"]["bound"] == 2 * 10
    assert found["streams"][0]["window"] == {"slide": 60_000_000, "size": 60_000_000}
    assert found["streams"][0]["predicate"] == "temp > 0"
    assert found["streams"][0]["omission"]["interval"] is None


@pytest.mark.usefixtures("directory")
def test_verify_compares_every_row() -> None:
    code, out, _ = _run("verify", "--as-arrived", "q.sql", "--input", "air=air.csv", "--json")
    found = orjson.loads(out)
    assert code == 0
    assert [(one["query"], one["reference_alarms"], one["alarms"]) for one in found] == [
        ("mean", 2, 2),
        ("often", 4, 4),
    ]
    assert all(one["missed"] == one["extra"] == 0 for one in found)


def test_verify_finds_what_differs(directory: Path) -> None:
    catalog = catalog_of(SQL)
    recording = read_recording(catalog.streams["air"], [str(directory / "air.csv")])
    query = catalog.alerts["often"].query
    assert isinstance(query, WindowGroupBy)
    rows = run_query(with_group_keys(query), catalog, {recording.stream.name: recording}).rows
    assert compare_windowed_groups("often", query, {"air": recording}, rows.columns).same
    less = compare_windowed_groups("often", query, {"air": recording}, rows.take(np.arange(3)).columns)
    assert (less.missed, less.extra) == (1, 0)
    wrong = dict(rows.columns, v1=Vector(np.add(rows.columns["v1"].data, [0, 1, 0, 1])))
    found = compare_windowed_groups("often", query, {"air": recording}, wrong)
    assert (found.missed, found.extra) == (2, 2)


@pytest.mark.parametrize(
    ("values", "having", "alarms", "at_threshold"),
    [
        ((1.0, 1e-10), "sum(temp) > 1", 1, 0),  # far from 1 beside what the sum errs
        ((1.0, 1e-17), "sum(temp) > 1", 0, 1),
        ((1e17, 3.0, -1e17), "sum(temp) > 5", 0, 0),  # the sum is exact
        ((1.0, 1.0000000001), "avg(temp) > 1", 1, 0),
        ((3.0, 1.0, 2.0), "median(temp) >= 2", 1, 1),
        ((3.0, 1.0, 2.0), "max(temp) >= 3", 1, 0),
    ],
)
def test_a_group_is_at_the_threshold_by_the_error_of_its_own_sum(
    tmp_path: Path, values: tuple[float, ...], having: str, alarms: int, at_threshold: int
) -> None:
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts);"
        " CREATE ALERT q WITH (allow_unbounded = true) AS SELECT window_end, station"
        " FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)"
        f" GROUP BY window_end, station HAVING {having};"
    )
    rows = [f"p,2024-01-01T00:00:0{i}Z,{value!r}\n" for i, value in enumerate(values)]
    (tmp_path / "air.csv").write_text("station,ts,temp\n" + "".join(rows))
    code, out, err = _run(
        "verify", str(tmp_path / "q.sql"), "--input", f"air={tmp_path / 'air.csv'}", "--json"
    )
    assert code == 0, err
    (verdict,) = orjson.loads(out)
    found = [verdict[name] for name in ("reference_alarms", "alarms", "missed", "extra", "at_threshold")]
    assert found == [alarms, alarms, 0, 0, at_threshold]


TABLES = """
CREATE TABLE sites (station VARCHAR, region VARCHAR, target DOUBLE) WITH (path = 'sites.csv');
CREATE ALERT above AS
SELECT s.region, window_end, count(*) AS n, avg(a.temp - s.target) AS above, last(s.target) AS target
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) a JOIN sites s ON a.station = s.station
GROUP BY s.region, window_end
HAVING avg(a.temp - s.target) > 1;
"""


def test_windows_of_a_stream_with_thresholds_in_a_table(directory: Path) -> None:
    air, _, _ = SQL.partition("CREATE STREAM warm")
    (directory / "tables.sql").write_text(air + TABLES)
    (directory / "sites.csv").write_text("station,region,target\np,north,30\nq,south,40\nr,north,0\n")
    code, out, said = _run("run", "--as-arrived", "tables.sql", "--input", "air=air.csv")
    assert code == 0
    assert out.splitlines()[1:] == ["north,2024-01-01T00:01:00Z,2,3.25,30"]
    assert said.endswith("stream air: 1 tuple is missing in a window that had already ended\n")
    code, out, _ = _run("verify", "--as-arrived", "tables.sql", "--input", "air=air.csv", "--json")
    (found,) = orjson.loads(out)
    assert (code, found["reference_alarms"], found["missed"], found["extra"]) == (0, 1, 0, 0)
    code, out, _ = _run("explain", "tables.sql", "--json")
    (found,) = orjson.loads(out)["queries"]
    # Two panes, and as many groups as the table has regions.
    assert found["memory"]["bound"] == 2 * 2
    assert [one["omission"]["reason"] for one in found["streams"]][1] == "a table: it is read as it is"


def test_a_table_without_rows_gives_no_rows(directory: Path) -> None:
    air, _, _ = SQL.partition("CREATE STREAM warm")
    (directory / "tables.sql").write_text(air + TABLES)
    (directory / "sites.csv").write_text("station,region,target\n")
    code, out, _ = _run("run", "tables.sql", "--input", "air=air.csv")
    assert (code, out) == (0, "region,window_end,n,above,target\n")
    _, out, _ = _run("explain", "tables.sql")
    assert "warning: table sites has no rows, so the query never has a row" in " ".join(out.split())


def test_verify_and_explain_count_what_the_edge_drops_also_with_tables(directory: Path) -> None:
    (directory / "sites.csv").write_text("station,target\np,30\n")
    stream = SQL[: SQL.index("CREATE STREAM warm")]
    (directory / "t.sql").write_text(f"""{stream}
CREATE TABLE sites (station VARCHAR, target DOUBLE) WITH (path = 'sites.csv');
CREATE ALERT above AS
SELECT s.station, window_end, avg(a.temp - s.target) AS above
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) a JOIN sites s ON a.station = s.station
WHERE a.temp > 30
GROUP BY s.station, window_end;
""")
    code, out, _ = _run("verify", "t.sql", "--input", "air=air.csv")
    assert code == 0
    assert "8 tuples, 4 retained (50.0 %)" in out
    code, out, _ = _run("explain", "t.sql", "--input", "air=air.csv")
    assert code == 0
    assert "dropped at the edge: 4 of the 8 tuples of the recording (50 %)" in out


MEANS = """
CREATE STREAM means AS
SELECT station, window_end, avg(temp) AS mean FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
GROUP BY station, window_end;
CREATE ALERT high AS SELECT station, window_end, mean FROM means WHERE mean > 10;
CREATE ALERT hour AS
WITH few AS (SELECT * FROM means WHERE station = 'p' OR mean < 20)
SELECT window_end, count(*) AS n, max(mean) AS most FROM TUMBLE(few, window_end, INTERVAL '2' MINUTE)
GROUP BY window_end;
CREATE ALERT above AS
SELECT a.station, a.ts, a.temp - m.mean AS above
FROM air a JOIN means m ON a.station = m.station
  AND m.window_end BETWEEN a.ts - INTERVAL '1' MINUTE AND a.ts
WHERE a.temp > m.mean;
"""
_NESTED = {
    # The 40 of q is too late for the first minute.
    "high": ["p,2024-01-01T00:01:00Z,33.25", "q,2024-01-01T00:01:00Z,20"],
    "hour": ["2024-01-01T00:02:00Z,3,33.25"],
    "above": ["q,2024-01-01T00:01:03Z,13"],
}


@pytest.mark.parametrize("name", list(_NESTED))
def test_queries_over_rows_of_aggregates(directory: Path, name: str) -> None:
    air, _, _ = SQL.partition("CREATE STREAM warm")
    (directory / "nested.sql").write_text(air + MEANS)
    code, out, said = _run("run", "--as-arrived", "nested.sql", "--query", name, "--input", "air=air.csv")
    assert code == 0
    assert out.splitlines()[1:] == _NESTED[name]
    assert said.endswith("stream air: 1 tuple is missing in a window that had already ended\n")
    code, out, _ = _run("verify", "--as-arrived", "nested.sql", "--input", "air=air.csv", "--json")
    found = {one["query"]: one for one in orjson.loads(out)}
    assert code == 0
    assert found[name]["alarms"] == found[name]["reference_alarms"] == len(_NESTED[name])
    code, out, _ = _run("explain", "nested.sql", "--query", name)
    assert "rows of aggregates come when their windows have ended" in " ".join(out.split())


def test_an_unbounded_join_with_rows_of_aggregates_has_no_witness_to_run(directory: Path) -> None:
    air, _, _ = SQL.partition("CREATE STREAM warm")
    means, _, _ = MEANS.partition("CREATE ALERT")
    join = "means m JOIN air a ON a.station = m.station AND a.ts >= m.window_end"
    ever = f"CREATE ALERT ever AS SELECT m.station, m.mean, a.temp FROM {join};"
    (directory / "ever.sql").write_text(air + means + ever)
    code, out, said = _run("explain", "ever.sql", "--query", "ever", "--witness")
    assert code == 1 and out.startswith("alert ever: REFUSED") and not said


def test_times_of_rows_of_aggregates_have_the_form_of_the_first_stream(tmp_path: Path) -> None:
    columns = "station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts"
    sql = f"""
CREATE STREAM one ({columns}) WITH (time_unit = 's');
CREATE STREAM two ({columns});
CREATE STREAM means AS SELECT station, window_end, max(ts) AS latest
FROM TUMBLE(two, ts, INTERVAL '1' MINUTE) GROUP BY station, window_end;
CREATE ALERT q AS SELECT o.ts, m.window_end, m.latest, o.ts - m.latest AS since
FROM one o JOIN means m ON o.station = m.station
  AND o.ts BETWEEN m.window_end AND m.window_end + INTERVAL '1' MINUTE;
CREATE ALERT turned AS SELECT o.ts, m.latest
FROM means m JOIN one o ON o.station = m.station
  AND o.ts BETWEEN m.window_end AND m.window_end + INTERVAL '1' MINUTE;
"""
    (tmp_path / "q.sql").write_text(sql)
    (tmp_path / "one.csv").write_text("station,ts,temp\np,1704067265,1\n")
    (tmp_path / "two.csv").write_text("station,ts,temp\np,2024-01-01T00:00:02Z,1\n")
    inputs = [f"--input={name}={tmp_path}/{name}.csv" for name in ("one", "two")]
    code, out, _ = _run("run", str(tmp_path / "q.sql"), "--query", "q", *inputs)
    assert code == 0
    # A difference of times is a number of microseconds.
    assert out.splitlines()[1:] == ["1704067265,1704067260,1704067202,63000000"]
    _, out, _ = _run("run", str(tmp_path / "q.sql"), "--query", "turned", *inputs)
    assert out.splitlines()[1:] == ["2024-01-01T00:01:05Z,2024-01-01T00:00:02Z"]


SURFACE = """station,ts,temp
p,2024-01-01T00:00:02Z,30
q,2024-01-01T00:00:58Z,15
q,2024-01-01T00:01:02Z,30
p,2024-01-01T00:01:02Z,0
"""
PAIRS = """
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 10, max_stall = '10 seconds', max_ahead = '0');
CREATE STREAM pairs AS
SELECT a.station, a.ts, s.ts AS at, a.temp - s.temp AS difference
FROM air a JOIN surface s ON a.station = s.station
  AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND;
CREATE ALERT often AS
SELECT station, window_end, count(*) AS n, avg(difference) AS mean FROM TUMBLE(pairs, ts, INTERVAL '1' MINUTE)
WHERE difference > 0 GROUP BY station, window_end;
CREATE ALERT seldom AS
SELECT window_end, count(*) AS n, max(ts) AS latest
FROM HOP(pairs, at, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) GROUP BY window_end HAVING count(*) < 3;
CREATE ALERT aside AS
SELECT s.station, window_end, count(*) AS n, max(s.temp * 2) AS double, max(a.temp * 2) AS own
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) a JOIN surface s ON a.station = s.station
  AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.temp > s.temp GROUP BY s.station, window_end;
CREATE ALERT together AS
SELECT a.station, s.window_end, count(*) AS n, max(s.temp) AS most
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) a
JOIN TUMBLE(surface, ts, INTERVAL '1' MINUTE) s ON a.station = s.station AND a.window_start = s.window_start
GROUP BY a.station, a.window_start, s.window_end;
CREATE ALERT runs AS
SELECT station, window_start, window_end, count(*) AS n FROM SESSION(pairs, ts, INTERVAL '2' SECOND)
GROUP BY station, window_start, window_end;
"""
_OF_PAIRS = {
    "often": [
        "p,2024-01-01T00:01:00Z,2,3.25",
        "q,2024-01-01T00:01:00Z,1,5",
        "q,2024-01-01T00:02:00Z,2,10.5",
    ],
    "seldom": ["2024-01-01T00:00:30Z,2,2024-01-01T00:00:03Z"],
    "aside": [
        "p,2024-01-01T00:01:00Z,2,60,71",
        "q,2024-01-01T00:01:00Z,1,30,40",
        "q,2024-01-01T00:02:00Z,2,60,66",
    ],
    "together": [
        "p,2024-01-01T00:01:00Z,2,30",
        "q,2024-01-01T00:01:00Z,2,15",
        "q,2024-01-01T00:02:00Z,2,30",
    ],
    "runs": [
        "p,2024-01-01T00:00:01Z,2024-01-01T00:00:05Z,2",
        "q,2024-01-01T00:00:59Z,2024-01-01T00:01:01Z,2",
        "q,2024-01-01T00:01:03Z,2024-01-01T00:01:06Z,3",
    ],
}


@pytest.mark.parametrize("name", list(_OF_PAIRS))
def test_aggregates_of_a_join(directory: Path, name: str) -> None:
    air, _, _ = SQL.partition("CREATE STREAM warm")
    (directory / "pairs.sql").write_text(air + PAIRS)
    (directory / "surface.csv").write_text(SURFACE)
    given = ("--input", "air=air.csv", "--input", "surface=surface.csv")
    code, out, said = _run("run", "pairs.sql", "--query", name, *given)
    assert (code, said) == (0, "")
    assert out.splitlines()[1:] == _OF_PAIRS[name]
    code, out, _ = _run("verify", "pairs.sql", *given, "--json")
    found = {one["query"]: one for one in orjson.loads(out)}
    assert code == 0
    assert found[name]["alarms"] == found[name]["reference_alarms"] == len(_OF_PAIRS[name])
    assert found[name]["missed"] == found[name]["extra"] == 0
    code, out, _ = _run("explain", "pairs.sql", "--query", name)
    assert "the row of a window comes when all of its tuples are joined" in " ".join(out.split())
    assert "no omission: every combination counts for the aggregates of its windows" in " ".join(out.split())

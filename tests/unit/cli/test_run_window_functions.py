"""`tamis run` and `tamis verify` for queries with window functions."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

SQL = """
CREATE STREAM air (room VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH (keys = 3, rate = '1/s', history = '1 minute');
CREATE ALERT jumps AS
SELECT room, ts, x - before AS rise
FROM (SELECT *, lag(x) OVER (PARTITION BY room ORDER BY ts) AS before FROM air)
WHERE x - before > 5;
CREATE ALERT rates AS
SELECT room, ts, (x - lag(x) OVER w) / extract(epoch FROM ts - lag(ts) OVER w) AS rate
FROM air WINDOW w AS (PARTITION BY room ORDER BY ts) QUALIFY rate >= 2;
CREATE ALERT beside AS
SELECT a.room, a.ts, b.room AS other
FROM air a JOIN air b ON ABS(a.ts - b.ts) <= INTERVAL '3' SECOND
WHERE a.room < b.room AND a.x > max(a.x) OVER (PARTITION BY a.room ORDER BY a.ts
  RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW) - 0.5 AND b.x > 9;
CREATE ALERT often AS
SELECT window_end, room, count(*) AS n
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) WHERE x > lag(x) OVER (PARTITION BY room ORDER BY ts)
GROUP BY window_end, room;
CREATE ALERT times AS
SELECT room, lag(ts) OVER w AS before, date_trunc('minute', lag(ts) OVER w) AS minute
FROM air WINDOW w AS (PARTITION BY room ORDER BY ts) QUALIFY before IS NOT NULL;
CREATE ALERT latest AS
WITH p AS (SELECT room, ts, lag(ts) OVER (PARTITION BY room ORDER BY ts) AS before FROM air)
SELECT room, max(before) AS latest, window_end FROM TUMBLE(p, ts, INTERVAL '1' MINUTE)
GROUP BY room, window_end;
"""
# Out of order; second 4 of b is late, second 99 of a too long after the reading before it. No value at 12.
AIR = [
    ("a", 10, "1.0"),
    ("b", 10, "1.0"),
    ("a", 14, "12.0"),
    ("a", 12, ""),
    ("a", 11, "3.0"),
    ("b", 16, "10.0"),
    ("b", 4, "30.0"),
    ("a", 15, "20.0"),
    ("a", 99, "40.0"),
    ("a", 100, "47.0"),
]
START = 1_700_000_000


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    lines = [f"{room},{(START + second) * 1_000_000},{x}" for room, second, x in AIR]
    (tmp_path / "air.csv").write_text("\n".join(["room,ts,x", *lines]) + "\n")


def rows(query: str) -> list[tuple[object, ...]]:
    arguments = [
        "run",
        "q.sql",
        "--query",
        query,
        "--input",
        "air=air.csv",
        "--format",
        "ndjson",
        "--as-arrived",
    ]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    return sorted((tuple(orjson.loads(line).values()) for line in lines), key=repr)


def at(second: int) -> int:
    return (START + second) * 1_000_000


def test_a_reading_is_compared_with_the_one_before_it() -> None:
    # The reading before second 14 of a is that of second 12, without a value.
    assert rows("jumps") == [
        ("a", at(15), 8.0),
        ("a", at(100), 7.0),
        ("b", at(16), 9.0),
    ]


def test_rates_of_change_have_the_distance_in_time() -> None:
    assert rows("rates") == [("a", at(11), 2.0), ("a", at(15), 8.0), ("a", at(100), 7.0)]


def test_times_of_earlier_readings_are_written_as_the_file_writes_times() -> None:
    before = [("a", at(second)) for second in (10, 11, 12, 14, 99)] + [("b", at(10))]
    assert rows("times") == [(room, time, time // 60_000_000 * 60_000_000) for room, time in before]
    assert [(room, latest) for room, latest, _ in rows("latest")] == [
        ("a", at(14)),
        ("a", at(99)),
        ("a", None),
        ("b", at(10)),
    ]


def test_all_kinds_of_queries_are_verified() -> None:
    result = CliRunner().invoke(main, ["verify", "q.sql", "--input", "air=air.csv"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = {line.split()[0]: line for line in result.stdout.splitlines()}
    for query, alarms in (("jumps", 3), ("rates", 3), ("beside", 2), ("often", 3)):
        assert f"{alarms} alarms in the plain join" in found[query], found[query]
        assert "missed 0, extra 0" in found[query], found

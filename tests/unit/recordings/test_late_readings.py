"""`tamis verify` reports alarms lost to lateness, and the reading that made the others late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.recordings.typed import late_cause

STREAM = (
    "CREATE STREAM {0} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
)
JOIN = (
    "CREATE ALERT hot AS SELECT a.k FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND"
    " WHERE a.v + b.v > 10;"
)
WINDOWS = (
    "CREATE ALERT often AS SELECT window_end, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '1' MINUTE)"
    " GROUP BY window_end;"
)


ONE = STREAM.format("a")


def verify(directory: Path, sql: str, *, future: bool) -> tuple[str, list[dict[str, Any]]]:
    """What verify prints for people and as JSON, of 30 pairs; the tenth may come with a reading of 2100."""
    (directory / "q.sql").write_text(sql)
    inputs = []
    for stream in "ab" if sql.endswith(JOIN) else "a":
        rows = [f"x,2026-01-01T00:{i:02}:00Z,6" for i in range(30)]
        if future:
            rows.insert(10, "x,2100-01-01T00:00:00Z,1")
        (directory / f"{stream}.csv").write_text("\n".join(["k,ts,v", *rows]) + "\n")
        inputs += ["--input", f"{stream}={directory / stream}.csv"]
    arguments = ["verify", str(directory / "q.sql"), *inputs, "--as-arrived"]
    printed = CliRunner().invoke(main, arguments, catch_exceptions=False)
    told = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert (printed.exit_code, told.exit_code) == (0, 0)
    return printed.stdout, orjson.loads(told.stdout)


def test_the_reading_that_made_alarms_late_is_named(tmp_path: Path) -> None:
    text, (verdict,) = verify(tmp_path, STREAM.format("a") + STREAM.format("b") + JOIN, future=True)
    assert (verdict["reference_alarms"], verdict["late"], verdict["missed"]) == (30, 20, 0)
    lines = text.splitlines()
    assert lines[1].startswith("warning: lateness, not omission, may take 20 of 30 alarms of hot: ")
    assert lines[2] == (
        f"  stream a: {tmp_path}/a.csv, column ts, row 11: 2100-01-01T00:00:00Z is 27,028 days ahead of the"
        " readings behind it, of which 20 are late"
    )
    assert [one["stream"] for one in verdict["lateness"]] == ["a", "b"]
    assert verdict["lateness"][0]["ahead_seconds"] == 2_335_217_460.0


def test_windows_leave_late_readings_out_and_say_so(tmp_path: Path) -> None:
    text, (verdict,) = verify(tmp_path, STREAM.format("a") + WINDOWS, future=True)
    assert "may take some alarms of often" in text
    assert verdict["lateness"][0]["late"] == 20


@pytest.mark.parametrize(
    "sql", [STREAM.format("a") + STREAM.format("b") + JOIN, STREAM.format("a") + WINDOWS]
)
def test_nothing_is_said_where_nothing_is_late(tmp_path: Path, sql: str) -> None:
    text, (verdict,) = verify(tmp_path, sql, future=False)
    assert "lateness" not in verdict
    assert len(text.splitlines()) == 1


def test_the_mover_is_the_one_behind_which_most_are_late() -> None:
    times = np.array([0, 10, 1, 100, 2, 3, 101, 4])
    late = np.array([False, False, True, False, True, True, False, True])
    assert late_cause(times, late) == (3, 97, 2)
    assert late_cause(times, np.zeros(8, np.bool_)) is None


def test_late_readings_are_counted_and_named_for_every_query(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        ONE + "CREATE ALERT rises AS SELECT k, ts, v - lag(v) OVER w AS rise FROM a"
        " WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY rise > 1;"
    )
    rows = [f"x,2026-01-01T00:0{minute}:00Z,{3 * minute}" for minute in range(6)]
    (tmp_path / "a.csv").write_text("\n".join(["k,ts,v", *rows[::-1]]) + "\n")
    arguments = ["run", str(tmp_path / "q.sql"), "--input", f"a={tmp_path}/a.csv"]
    ordered = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert (ordered.stdout.count("\n"), ordered.stderr) == (6, "")
    arrived = CliRunner().invoke(main, [*arguments, "--as-arrived"], catch_exceptions=False)
    assert arrived.stdout == "k,ts,rise\n"
    assert arrived.stderr == (
        "stream a: 5 of 6 readings are late: window functions and similar() are NULL for late readings, and"
        " windows that have ended leave them out\n"
        f"  {tmp_path}/a.csv, column ts, row 1: 2026-01-01T00:05:00Z is 60 s ahead of the readings behind it,"
        " of which 5 are late\n"
    )

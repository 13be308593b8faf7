"""`tamis run` and `tamis verify` as commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from tamis.cli import main
from tamis.operators.time_join import tuple_entries

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10, rate = '10/s');
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10, rate = '10/s');
"""
GAP = """
CREATE ALERT gap AS SELECT a.station, a.ts, s.ts AS surface_ts, a.ts + INTERVAL '1' SECOND AS later,
  a.ts - s.ts AS apart, a.temp - s.temp AS diff
FROM air a JOIN surface s ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts
WHERE a.temp - s.temp > 3;
"""
UNBOUNDED = GAP.replace("BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts", ">= a.ts")
WARM = "CREATE STREAM warm AS SELECT station, ts, temp * 2 AS twice FROM air WHERE temp > 5;\n"
AIR = """station,ts,temp
north,2024-01-01T00:00:03Z,6
north,2024-01-01T00:00:04Z,7.5
south,2024-01-01 00:00:05,9
"""
SURFACE = """station,ts,temp
north,2024-01-01T00:00:02.500Z,1
south,2024-01-01T00:00:02Z,8
"""


class Folder:
    """A file of SQL and recordings, and the commands over them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> str:
        (self.path / name).write_text(text)
        return str(self.path / name)

    def inputs(self, air: str = AIR, surface: str = SURFACE) -> list[str]:
        files = {"air": self.write("air.csv", air), "surface": self.write("surface.csv", surface)}
        return [argument for name, file in files.items() for argument in ("--input", f"{name}={file}")]

    def call(self, command: str, sql: str, *arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(main, [command, self.write("q.sql", sql), *arguments], input=text)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_run_writes_the_columns_of_select_and_times_as_they_were(folder: Folder) -> None:
    result = folder.call("run", SQL + GAP, *folder.inputs())
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "station,ts,surface_ts,later,apart,diff\n"
        "north,2024-01-01T00:00:03Z,2024-01-01T00:00:02.500Z,2024-01-01T00:00:04Z,500000,5\n"
        "north,2024-01-01T00:00:04Z,2024-01-01T00:00:02.500Z,2024-01-01T00:00:05Z,1500000,6.5\n"
    )


def test_run_writes_numbers_where_times_are_numbers(folder: Folder) -> None:
    air, surface = "station,ts,temp\nn,3000000,6\n", "station,ts,temp\nn,2500000,1\n"
    result = folder.call("run", SQL + GAP, *folder.inputs(air, surface), "--format", "ndjson")
    assert orjson.loads(result.stdout) == {
        "station": "n",
        "ts": 3_000_000,
        "surface_ts": 2_500_000,
        "later": 4_000_000,
        "apart": 500_000,
        "diff": 5.0,
    }


def test_rows_are_in_the_order_in_which_results_arise(folder: Folder) -> None:
    air = "station,ts,temp\nb,7000000,9\na,6000000,9\na,5000000,9\n"
    surface = "station,ts,temp\na,4000000,1\nb,6500000,1\n"
    rows = folder.call("run", SQL + GAP, *folder.inputs(air, surface)).stdout.splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == ["5000000", "6000000", "7000000"]


def test_run_evaluates_a_derived_stream(folder: Folder) -> None:
    air = ["--input", f"air={folder.write('air.csv', AIR)}"]
    result = folder.call("run", SQL + WARM, *air)
    assert result.stdout == (
        "station,ts,twice\n"
        "north,2024-01-01T00:00:03Z,12\n"
        "north,2024-01-01T00:00:04Z,15\n"
        "south,2024-01-01 00:00:05,18\n"
    )


def test_names_are_folded_as_in_sql(folder: Folder) -> None:
    """The two statements make one stream and one query each, of which one keeps its capitals."""
    air = folder.write("air.csv", AIR)
    named = SQL + WARM.replace("warm", '"Warm"') + WARM.replace("warm", "WARM").replace("> 5", "> 8")
    for query, rows in (("Warm", 3), ('"Warm"', 3), ("WARM", 1), ("wArM", 1)):
        result = folder.call("run", named, "--query", query, "--input", f"AIR={air}")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1 + rows), result.output
        asked = folder.call("explain", named, "--query", query, "--json")
        assert [q["name"] for q in orjson.loads(asked.stdout)["queries"]] == [
            query.strip('"') if rows == 3 else "warm"
        ]
    surface = folder.write("surface.csv", SURFACE)
    result = folder.call("verify", SQL + GAP, "--input", f"Air={air}", "--input", f"SURFACE={surface}")
    assert result.exit_code == 0, result.output
    quoted = folder.call("run", SQL + GAP, "--input", f'"Air"={air}', "--input", f"surface={surface}")
    assert (quoted.exit_code, "there is no stream Air" in quoted.stderr) == (2, True)


def test_a_recording_that_nobody_reads_is_left_aside(folder: Folder) -> None:
    both = folder.inputs()
    read, all_given = (folder.call("run", SQL + WARM, "--query", "warm", *some) for some in (both[:2], both))
    assert all_given.exit_code == 0
    assert (
        all_given.stderr == "stream surface: its recording is ignored, since warm does not read the stream\n"
    )
    assert all_given.stdout == read.stdout


def test_run_without_results_writes_the_header(folder: Folder) -> None:
    result = folder.call("run", SQL + GAP.replace("> 3", "> 100"), *folder.inputs())
    assert result.stdout == "station,ts,surface_ts,later,apart,diff\n"


def test_run_reads_standard_input_and_writes_files(folder: Folder) -> None:
    surface = folder.write("surface.csv", SURFACE)
    target = folder.path / "rows.ndjson"
    result = folder.call(
        "run", SQL + GAP, "--input", "air=-", "--input", f"surface={surface}", "--format", "csv",
        "-o", str(target), text=AIR,
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    assert len(target.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("sql", "arguments", "message"),
    [
        (SQL + GAP + WARM, [], "several queries; choose one with --query: warm, gap"),
        (SQL + GAP, ["--query", "gip"], "there is no query 'gip'; did you mean 'gap'?"),
        (SQL, [], "no query to run"),
        (SQL + GAP, [], "no recording of stream surface, which gap reads; add --input surface=FILE"),
        (
            SQL + GAP,
            ["--input", "water=w.csv"],
            "--input water=: there is no stream water; give air, surface",
        ),
        (
            SQL + GAP + WARM,
            ["--query", "warm", "--input", "warm=x.csv"],
            "stream warm is made from stream air by a query, and is not recorded; give air",
        ),
        (SQL + GAP + WARM, ["--query", "gap", "--input", "warm=x.csv"], "made from stream air by a query"),
        (SQL + GAP, ["--input", "surface"], "--input: 'surface' names no file; write STREAM=FILE"),
        (SQL + GAP, ["--input", "surface=-", "--input", "surface=-"], "standard input can be read only once"),
        (SQL + GAP, ["--input", "surface=none.csv"], "none.csv: can't be read"),
        (SQL + "CREATE ALERT", [], "q.sql:6:13: the name of an alert is missing"),
    ],
)
def test_wrong_input_says_what_and_where(
    folder: Folder, sql: str, arguments: list[str], message: str
) -> None:
    air = ["--input", f"air={folder.write('air.csv', AIR)}"]
    result = folder.call("run", sql, *air, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_row_of_the_wrong_type_is_named(folder: Folder) -> None:
    for command in ("run", "verify"):
        result = folder.call(command, SQL + GAP, *folder.inputs(air=AIR + "n,2024-01-01T00:00:06Z,warm\n"))
        assert (result.exit_code, result.stdout) == (2, "")
        assert "air.csv, column temp, row 4: 'warm' is not of type DOUBLE" in result.stderr


def test_what_an_edge_would_refuse_is_told(folder: Folder) -> None:
    for command in ("run", "verify"):
        result = folder.call(command, SQL + GAP, *folder.inputs(air=AIR + "north,2024-01-01T00:00:04Z,700\n"))
        assert result.exit_code == 0
        assert "stream air: 1 row left out; an edge would send it to the dead letters" in result.stderr


def test_verify_in_json(folder: Folder) -> None:
    result = folder.call("verify", SQL + GAP, *folder.inputs(), "--json")
    assert result.exit_code == 0
    assert orjson.loads(result.stdout) == [
        {
            "query": "gap",
            "tuples": 5,
            "retained": 5,
            "reference_alarms": 2,
            "alarms": 2,
            "missed": 0,
            "extra": 0,
            "late": 0,
            "at_threshold": 0,
        }
    ]


def test_verify_for_people(folder: Folder) -> None:
    other = GAP.replace("ALERT gap", "ALERT another")
    result = folder.call("verify", SQL + GAP + other, *folder.inputs())
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["gap", "another"]
    assert all(line.endswith("missed 0, extra 0") for line in lines)


def test_verify_counts_late_and_at_threshold_apart(folder: Folder) -> None:
    # 4.3 - 1.3 is computed as 3, and is less.
    air = "station,ts,temp\na,9000000,9\na,8000000,4.3\na,5000000,9\n"
    surface = "station,ts,temp\na,4000000,1.3\n"
    sql = SQL + GAP.replace("> 3", ">= 3")
    (found,) = orjson.loads(
        folder.call("verify", sql, *folder.inputs(air, surface), "--as-arrived", "--json").stdout
    )
    assert (found["reference_alarms"], found["late"], found["at_threshold"]) == (3, 1, 1)


def test_alarms_that_hold_only_in_exact_arithmetic_are_said(folder: Folder) -> None:
    # 6.8 + 0.2 is computed as 7, and is less.
    sql = SQL + GAP.replace("a.temp - s.temp > 3", "mod(a.temp + s.temp, 7) > 6.5")
    inputs = folder.inputs(
        "station,ts,temp\na,4000000,6.8\na,4100000,1\n", "station,ts,temp\na,4000000,0.2\n"
    )
    found = folder.call("run", sql, *inputs)
    assert len(found.stdout.splitlines()) == 2
    assert "gap: 1 row holds in exact arithmetic and not as computed" in found.stderr
    (verdict,) = orjson.loads(folder.call("verify", sql, *inputs, "--json").stdout)
    counted = {
        name: verdict[name] for name in ("reference_alarms", "alarms", "missed", "extra", "at_threshold")
    }
    assert counted == {"reference_alarms": 0, "alarms": 1, "missed": 0, "extra": 0, "at_threshold": 1}


def test_verify_takes_several_files_of_a_stream(folder: Folder) -> None:
    inputs = folder.inputs()
    more = ["--input", f"air={folder.write('more.csv', AIR)}"]
    (found,) = orjson.loads(folder.call("verify", SQL + GAP, *inputs, *more, "--json").stdout)
    assert (found["tuples"], found["late"], found["missed"]) == (8, 0, 0)


def test_verify_fails_when_omission_is_wrong(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tuple_entries, "retained_by_key", lambda keys, *_, **__: np.zeros(len(keys), np.bool_)
    )
    result = folder.call("verify", SQL + GAP, *folder.inputs())
    assert result.exit_code == 1
    assert result.stdout.endswith("missed 2, extra 0\n")


def test_verify_needs_an_alert(folder: Folder) -> None:
    result = folder.call("verify", SQL + WARM)
    assert result.exit_code == 2 and "no alert to verify" in result.stderr


def test_an_alert_that_is_refused_is_not_verified(folder: Folder) -> None:
    for command in ("verify", "run"):
        result = folder.call(command, SQL + UNBOUNDED, *folder.inputs())
        assert (result.exit_code, result.stdout) == (1, "")
        assert "q.sql:7:14: alert gap: nothing bounds" in result.stderr


def test_not_bounded_is_a_no_and_a_mistake_is_not(folder: Folder) -> None:
    assert folder.call("explain", SQL + UNBOUNDED).exit_code == 1
    result = folder.call("explain", SQL + UNBOUNDED.replace("a.temp", "a.tmep"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "q.sql:8:25: 'a' has no column 'tmep'" in result.stderr


def test_a_paused_alert_is_verified(folder: Folder) -> None:
    result = folder.call("verify", SQL + GAP + "PAUSE ALERT gap;", *folder.inputs())
    assert result.exit_code == 0 and result.stdout.startswith("gap")


def test_verify_as_a_process(folder: Folder) -> None:
    command = [
        sys.executable,
        "-m",
        "tamis.cli",
        "verify",
        folder.write("q.sql", SQL + GAP),
        *folder.inputs(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("missed 0, extra 0\n") and done.stderr == ""

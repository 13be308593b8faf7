"""`tamis omit` as a command: formats, times, keys, order, errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from tamis.cli import main

ROWS = ["ts,v,station", "1,5.50,007", "2,1,007", "3,2,007", "4,6,007", "5,0.0,007"]


def omit(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["omit", *arguments], input=text)


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


@pytest.fixture
def recording(tmp_path: Path) -> str:
    path = tmp_path / "readings.csv"
    path.write_text(lines(*ROWS))
    return str(path)


def test_rows_go_out_as_they_came_in(recording: str) -> None:
    result = omit("--interval", "3", "--sides", "above", "--stats", recording)
    assert result.exit_code == 0
    assert result.stdout == lines(ROWS[0], ROWS[1], ROWS[4], ROWS[5])
    assert result.stderr == "5 rows, 3 retained (60.00 %)\n"


def test_sides(recording: str) -> None:
    assert omit("--interval", "3", "--sides", "below", recording).stdout == lines(*ROWS[:3], ROWS[5])
    assert omit("--interval", "3", recording).stdout == lines(*ROWS[:3], *ROWS[4:])


def test_interval_0_retains_all(recording: str) -> None:
    assert omit("--interval", "0", recording).stdout == lines(*ROWS)


def test_without_rows_any_interval_will_do(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("ts,v\n")
    for interval in ("30s", "30"):
        result = omit("--interval", interval, "--max-delay", interval, str(empty))
        assert (result.exit_code, result.stdout) == (0, "ts,v\n")
    assert omit("--interval", "-1", str(empty)).exit_code == 2


def test_ties_and_strict() -> None:
    text = lines("ts,v", *(f"{t},1" for t in range(8)))
    fewest = omit("--interval", "3", "--format", "csv", "-", text=text).stdout
    strict = omit("--interval", "3", "--strict", "--format", "csv", "-", text=text).stdout
    assert len(fewest.splitlines()) < len(strict.splitlines()) == 9


def test_max_delay_retains_what_can_not_wait(recording: str) -> None:
    plain = omit("--interval", "3", "--sides", "above", recording).stdout
    hurried = omit("--interval", "3", "--sides", "above", "--max-delay", "0.5", recording).stdout
    assert set(plain.splitlines()) < set(hurried.splitlines())
    assert omit("--interval", "3", "--max-delay", "0", recording).stdout == lines(*ROWS)


def test_output_is_in_order_of_time() -> None:
    text = lines("ts,v", "30,1", "10,9", "20,5", "10,8")
    out = omit("--interval", "0", "--format", "csv", "-", text=text).stdout
    assert out == lines("ts,v", "10,9", "10,8", "20,5", "30,1")


def test_keys_are_apart_and_numbers_are_keys_by_value() -> None:
    text = lines("ts,v,a,b", "1,9,1,x", "2,1,1.0,x", "3,9,01,x", "2,2,1,y", "2,0,,x")
    out = omit(
        "--interval", "5", "--sides", "above", "--key", "a", "--key", "b", "--format", "csv", "-", text=text
    )
    assert out.stdout == lines("ts,v,a,b", "1,9,1,x", "2,2,1,y", "2,0,,x", "3,9,01,x")


@pytest.mark.parametrize("interval", ["2500ms", "2.5s", "2 seconds 500 ms"])
def test_iso_times(interval: str) -> None:
    rows = ["2024-01-01T00:00:00.5Z,5", "2024-01-01T00:00:01Z,1", "2024-01-01T00:00:03Z,5"]
    text = lines("t,v", *rows)
    out = omit("--interval", interval, "--sides", "above", "--time", "t", "--format", "csv", "-", text=text)
    assert out.stdout == lines("t,v", rows[0], rows[2])
    short = omit("--interval", "2499ms", "--sides", "above", "--time", "t", "--format", "csv", "-", text=text)
    assert short.stdout == text


def test_fractional_numbers_are_exact() -> None:
    """0.1 + 0.2 is not 0.3 in floating point, but 0.1 to 0.3 is a span of 0.2 here."""
    text = lines("ts,v", "0.1,5", "0.2,1", "0.3,5")
    assert omit("--interval", "0.2", "--sides", "above", "--format", "csv", "-", text=text).stdout == lines(
        "ts,v", "0.1,5", "0.3,5"
    )
    assert omit("--interval", "0.19", "--sides", "above", "--format", "csv", "-", text=text).stdout == text
    epoch = lines("ts,v", "1700000000.000001,5", "1700000000.000002,1", "1700000000.000003,5")
    out = omit("--interval", "0.000002", "--sides", "above", "--format", "csv", "-", text=epoch).stdout
    assert len(out.splitlines()) == 3


def test_ndjson_lines_stay_as_they_are() -> None:
    rows = ['{"ts":1, "v":2.50,"x":{"a":[1]}}', '{"ts":2,"v":1}', '{"v":3,"ts":3}']
    out = omit("--interval", "2", "--sides", "above", "--format", "ndjson", "-", text=lines(*rows))
    assert out.stdout == lines(rows[0], rows[2])


def test_formats_are_those_of_the_extensions(tmp_path: Path, recording: str) -> None:
    target = str(tmp_path / "kept.parquet")
    assert omit("--interval", "3", "--sides", "above", recording, "-o", target).stdout == ""
    table = pyarrow.parquet.read_table(target)
    assert table.to_pydict() == {"ts": [1, 4, 5], "v": [5.5, 6.0, 0.0], "station": [7, 7, 7]}
    again = omit("--interval", "0", "--format", "ndjson", target)
    assert again.stdout.splitlines()[0] == '{"ts":1,"v":5.5,"station":7}'


def test_parquet_timestamps(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    times = pa.array([0, 1_000, 2_000], pa.timestamp("ms", "UTC"))
    pyarrow.parquet.write_table(pa.table({"ts": times, "v": [5, 1, 5]}), path)
    out = omit("--interval", "2s", "--sides", "above", "--format", "csv", str(path)).stdout
    assert len(out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["--interval", "3s"], "ts,v\n1,2\n", "--interval: '3s' is no number, but the times are numbers"),
        (["--interval", "3"], "ts,v\n2024-01-01,2\n", "--interval: 3 has no unit, but the times are dates"),
        (["--interval=-3"], "ts,v\n1,2\n", "--interval: -3 is negative"),
        (["--interval", "1h", "--max-delay=-1s"], "ts,v\n2024-01-01,2\n", "--max-delay: -1s is negative"),
        (["--interval", "much"], "ts,v\n2024-01-01,2\n", "'much'"),
        (
            ["--interval", "3"],
            "ts,v\n1,2\n2,x\n",
            "standard input, column v, row 2: 'x' is not of type DOUBLE",
        ),
        (["--interval", "3"], "ts,v\n1,2\n2,\n", "column v, row 2: a value is missing"),
        (["--interval", "3"], "ts,v\n1,2\n2,nan\n", "column v, row 2: 'nan' can't be compared"),
        (["--interval", "3"], "ts,v\n1,2\n,1\n", "column ts, row 2: a time is missing"),
        (["--interval", "3s"], "ts,v\n2024-01-01,2\nnoon,1\n", "column ts, row 2: 'noon' is not a time"),
        (
            ["--interval", "3"],
            "at,v\n1,2\n",
            "no column ts; name the column of the times with --time; it has at, v",
        ),
        (["--interval", "3", "--value", "w"], "ts,v\n1,2\n", "no column w; it has ts, v"),
        (["--interval", "3", "--key", "k"], "ts,v\n1,2\n", "no column k; it has ts, v"),
    ],
)
def test_wrong_input_says_what_and_where(arguments: list[str], text: str, message: str) -> None:
    result = omit(*arguments, "--format", "csv", "-", text=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_standard_input_needs_a_format() -> None:
    result = omit("--interval", "3", "-", text="ts,v\n")
    assert result.exit_code == 2 and "--format" in result.stderr


def test_a_target_that_can_not_be_written(recording: str, tmp_path: Path) -> None:
    result = omit("--interval", "3", recording, "-o", str(tmp_path / "no" / "out.csv"))
    assert result.exit_code == 2 and "can't be written" in result.stderr


def test_as_a_process_in_a_pipe() -> None:
    text = "".join(f'{{"ts": {t}, "v": {t % 7}}}\n' for t in range(1_000))
    command = [sys.executable, "-m", "tamis.cli", "omit", "--interval", "14", "--format", "ndjson", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert 100 < len(done.stdout.splitlines()) < 500 and done.stderr == ""


def test_help_has_examples() -> None:
    assert "tamis omit --interval 30s" in omit("--help").stdout

"""`tamis run` and `tamis verify` of groups without windows over event time: the order of the tuples."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH (keys = 2);
CREATE ALERT seen AS SELECT k, sum(x) AS total, max(ts) AS latest FROM air GROUP BY k HAVING sum(x) < 1000;
"""
FILES = {
    "one.csv": "k,ts,x\np,10,1\np,30,2\np,20,4\n",
    "two.csv": "k,ts,x\np,15,100\nq,25,8\n",
    "placed.csv": "_order,k,ts,x\n2,p,10,1\n1,p,30,2\n",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {"q.sql": SQL, **FILES}.items():
        (tmp_path / name).write_text(content)


def _run(command: str, *files: str, more: tuple[str, ...] = ()) -> str:
    inputs = [part for file in files for part in ("--input", f"air={file}")]
    found = CliRunner().invoke(main, [command, "q.sql", *inputs, "--time-unit", "s", *more])
    assert found.exit_code == 0, found.stderr
    return found.stdout


def _rows(*files: str, more: tuple[str, ...] = ()) -> list[str]:
    return [line.removesuffix(",false") for line in _run("run", *files, more=more).splitlines()[1:]]


def test_tuples_of_a_file_come_in_order_of_event_time() -> None:
    assert _rows("one.csv") == ["p,1,10", "p,5,20", "p,7,30"]


def test_as_arrived_late_tuples_count_when_they_come() -> None:
    assert _rows("one.csv", more=("--as-arrived",)) == ["p,1,10", "p,3,30", "p,7,30"]


def test_several_files_come_in_the_order_of_their_watermarks() -> None:
    assert _rows("one.csv", "two.csv") == ["p,1,10", "p,101,15", "p,105,20", "q,8,25", "p,107,30"]
    arrived = _rows("one.csv", "two.csv", more=("--as-arrived",))
    assert arrived == ["p,1,10", "p,101,15", "q,8,25", "p,103,30", "p,107,30"]


def test_a_column_with_the_order_of_arrival_comes_first() -> None:
    assert _rows("placed.csv") == ["p,2,30", "p,3,30"]


def test_verify_compares_late_tuples_and_says_nothing_of_lateness() -> None:
    (found,) = orjson.loads(_run("verify", "one.csv", "two.csv", more=("--as-arrived", "--json")))
    assert (found["missed"], found["extra"], found["reference_alarms"]) == (0, 0, 2)
    assert "lateness" not in found

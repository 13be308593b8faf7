"""`tamis run` and `tamis verify` for queries that compare readings with patterns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.query.parse import catalog_of

SQL = """
CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, level INT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10, rate = '10/s');
CREATE PATTERN ramp VALUES (0, 1, 2);
CREATE PATTERN peak VALUES (0, 4, 0) WITH (max_gap = '5 seconds');
CREATE ALERT ramps AS
SELECT v.machine, v.ts, similarity(v.value, 'ramp') AS distance, scale(v.value, 'ramp') AS scale,
  shift(v.value, 'ramp') AS shift
FROM vib v WHERE similar(v.value, 'ramp', 0.1);
CREATE ALERT loaded AS
SELECT v.ts, l.ts AS loaded_at, pattern(v.value, ANY, 0.1) AS name
FROM vib v, vib l
WHERE similar(v.value, ANY, 0.1) AND l.level > 5 AND v.machine = l.machine
  AND ABS(v.ts - l.ts) <= INTERVAL '3' SECOND;
CREATE ALERT often AS
SELECT window_end, machine, count(*) AS n, max(similarity(value, 'peak', 0.1)) AS most
FROM TUMBLE(vib, ts, INTERVAL '10' SECOND) WHERE similar(value, 'peak', 0.1)
GROUP BY window_end, machine;
"""
# A ramp and a peak of machine a, out of order; the reading at second 3 of b is late, and second 19 of a is
# too far from the peak.
VIB = [
    ("a", 10, 1.0, 0),
    ("b", 10, 1.0, 0),
    ("a", 12, 5.0, 0),
    ("a", 11, 3.0, 9),
    ("b", 11, 2.0, 0),
    ("b", 3, 3.0, 0),
    ("b", 13, 3.0, 0),
    ("a", 13, 9.0, 0),
    ("a", 14, 5.0, 1),
    ("a", 20, 9.0, 0),
    ("a", 21, 5.0, 0),
]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    lines = [f"{machine},{1_700_000_000 + second},{v!r},{level}" for machine, second, v, level in VIB]
    (tmp_path / "vib.csv").write_text("\n".join(["machine,ts,value,level", *lines]) + "\n")
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, [*arguments, "--time-unit", "s"])
    return found.exit_code, found.stdout, found.stderr


def _rows(query: str) -> Iterator[list[str]]:
    code, out, _ = _run("run", "q.sql", "--query", query, "--input", "vib=vib.csv", "--as-arrived")
    assert code == 0
    return csv.reader(StringIO(out))


def test_run_computes_the_columns_of_the_recorded_stream() -> None:
    assert list(_rows("ramps")) == [
        ["machine", "ts", "distance", "scale", "shift"],
        ["a", "1700000012", "0", "0.5", "-0.5"],
        ["b", "1700000013", "0", "1", "-1"],
    ]
    assert [row[0::2] for row in _rows("loaded")] == [
        ["ts", "name"],
        ["1700000012", "ramp"],
        ["1700000014", "peak"],
    ]
    assert list(_rows("often")) == [["window_end", "machine", "n", "most"], ["1700000020", "a", "1", "0"]]


def test_verify_computes_every_window() -> None:
    code, out, _ = _run("verify", "q.sql", "--input", "vib=vib.csv", "--as-arrived", "--json")
    assert code == 0
    found = {one["query"]: one for one in orjson.loads(out)}
    assert {name: one["reference_alarms"] for name, one in found.items()} == {
        "ramps": 2,
        "loaded": 2,
        "often": 1,
    }
    assert all(one["missed"] == one["extra"] == one["at_threshold"] == 0 for one in found.values())
    # The base and the watched stream have the same late reading.
    assert [one["late"] for one in found["often"]["lateness"]] == [1]
    assert found["often"]["lateness"][0]["stream"] == "vib"


def test_a_distance_of_epsilon_is_at_the_threshold(directory: Path) -> None:
    # The distance is 1 / sqrt(18), whose double is a little less or greater.
    sql = SQL[: SQL.index("CREATE PATTERN ramp")] + (
        "CREATE PATTERN bent VALUES (0, 1, 1); CREATE ALERT near AS SELECT v.machine FROM vib v"
        " WHERE similar(v.value, 'bent', 0.2357022603955158, scale => (0.5, 0.5));"
    )
    (directory / "q.sql").write_text(sql)
    lines = [f"a,{1_700_000_000 + second},{value},0" for second, value in enumerate((7, 8, 9, 5, 7, 7))]
    (directory / "vib.csv").write_text("\n".join(["machine,ts,value,level", *lines]) + "\n")
    code, out, _ = _run("verify", "q.sql", "--input", "vib=vib.csv", "--json")
    assert code == 0
    (found,) = orjson.loads(out)
    # The window of 5, 7 and 7 is exactly similar.
    assert (found["reference_alarms"], found["at_threshold"], found["alarms"]) == (2, 1, 2)


def test_only_the_base_has_a_recording() -> None:
    code, _, error = _run("run", "q.sql", "--query", "ramps")
    assert code == 2
    assert "no recording of stream vib, which ramps reads" in error
    assert "add --input vib=FILE" in error
    (watched,) = catalog_of(SQL).alerts["ramps"].query.watched
    code, _, error = _run("run", "q.sql", "--query", "ramps", "--input", f"{watched.name}=vib.csv")
    assert code == 2
    assert f"there is no stream {watched.name}" in error

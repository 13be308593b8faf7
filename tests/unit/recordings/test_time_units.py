"""Times that are numbers: the unit in which they are read, and the warning where it is implausible."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.cli import main
from tamis.expressions.nodes import Type
from tamis.messaging.dead_letters import Reason
from tamis.recordings.json_values import convert
from tamis.recordings.times import PER_SECOND, TimeUnit, implausibility, plausible_unit
from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.edge import Edge
from tamis_edge.settings import EdgeConfig, FileSource
from tamis_edge.shards import intake

SQL = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE ALERT hot AS SELECT a.k, a.ts, b.ts AS bt, a.ts + INTERVAL '250' MILLISECOND AS later
FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND WHERE a.v + b.v > 10;
"""
FIRST = 1_760_000_000
UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)


def write(path: Path, times: list[Any]) -> None:
    rows = [{"k": "x", "ts": time, "v": 6.0} for time in times]
    if path.suffix == ".csv":
        path.write_text("k,ts,v\n" + "".join(f"x,{time},6\n" for time in times))
    elif path.suffix == ".ndjson":
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    else:
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)


def run(directory: Path, suffix: str, times: list[Any], *arguments: str) -> tuple[Any, str]:
    """What verify finds, and what run and verify say on standard error."""
    (directory / "q.sql").write_text(SQL)
    inputs = []
    for stream in "ab":
        path = directory / f"{stream}{suffix}"
        write(path, times)
        inputs += ["--input", f"{stream}={path}"]
    found = CliRunner().invoke(
        main, ["verify", str(directory / "q.sql"), "--json", *inputs, *arguments], catch_exceptions=False
    )
    assert found.exit_code == 0, found.stderr
    (verdict,) = orjson.loads(found.stdout)
    return verdict, found.stderr


@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet"])
@pytest.mark.parametrize("unit", UNITS)
def test_recordings_are_read_in_their_unit(tmp_path: Path, suffix: str, unit: TimeUnit) -> None:
    times = [(FIRST + 10 * i) * PER_SECOND[unit] for i in range(20)]
    verdict, said = run(tmp_path, suffix, times, "--time-unit", unit)
    assert said == ""
    assert (verdict["reference_alarms"], verdict["alarms"], verdict["missed"]) == (20, 20, 0)
    if unit != "us":
        _, said = run(tmp_path, suffix, times)
        assert said.count(f"({unit}) it would be 2025-10-09T08:53:20Z; set --time-unit") == 2


@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet"])
def test_seconds_may_have_fractions_and_are_written_as_they_were_read(tmp_path: Path, suffix: str) -> None:
    run(tmp_path, suffix, [FIRST + 0.5, FIRST + 10.25], "--time-unit", "s")
    inputs = [part for stream in "ab" for part in ("--input", f"{stream}={tmp_path / stream}{suffix}")]
    found = CliRunner().invoke(main, ["run", str(tmp_path / "q.sql"), *inputs, "--time-unit", "s"])
    assert found.stdout.splitlines() == [
        "k,ts,bt,later",
        f"x,{FIRST}.5,{FIRST}.5,{FIRST}.75",
        f"x,{FIRST + 10}.25,{FIRST + 10}.25,{FIRST + 10}.5",
    ]


def test_a_time_fits_at_most_one_unit() -> None:
    for unit in UNITS:
        for other in UNITS:
            number = FIRST * PER_SECOND[unit]
            read = number * 1_000_000 // PER_SECOND[other]
            assert plausible_unit(read, other) == (None if unit == other else unit)


def test_dates_before_2000_are_told_without_a_unit() -> None:
    times = np.array([0, FIRST * 1_000_000])
    assert (
        implausibility(times, None)
        == "1 of 2 times lie before 2000, the first of them at 1970-01-01T00:00:00Z"
    )
    assert implausibility(times[1:], None) is None
    assert implausibility(times[:0], None) is None


def test_a_dead_letter_names_the_unit_that_fits() -> None:
    _, (offence,) = convert("ts", [FIRST * 10**9], Type.TIMESTAMP, "us")
    assert offence.reason is Reason.OUT_OF_DOMAIN
    assert "it would fit in ns: set the time unit" in offence.error


def test_an_edge_says_once_that_a_source_counts_in_another_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    # Not what is printed: other tests in this process may have turned that off.
    monkeypatch.setattr(intake._log, "warning", lambda what, **fields: said.append(fields["reason"]))
    path = tmp_path / "air.csv"
    path.write_text("station,ts,temp\n" + "".join(f"a,{FIRST + i},1\n" for i in range(5)))
    source = FileSource(name="rec", kind="file", stream="air", path=path)
    config = EdgeConfig(name="e", sources=[source])
    metrics = Metrics("edge")
    edge = Edge(config, tmp_path / "data", KafkaSettings(bootstrap="127.0.0.1:1"), metrics)
    edge.plans._plan = plan(air([topic([entry(0)])]), ["air:e/rec"])
    for _ in range(3):
        edge.turn()
    assert len(said) == 1
    assert "as seconds (s) it would be 2025-10-09T08:53:20Z" in said[0]
    shown = metrics.exposition().decode()
    assert 'tamis_edge_doubtful_times_total{edge="e",stream="air"} 5.0' in shown
    for part in (edge.publisher, edge.journal, edge.spool):
        part.close()


def test_dates_have_no_unit_to_set(tmp_path: Path) -> None:
    _, said = run(tmp_path, ".csv", ["1970-01-01T00:00:01Z", "2025-10-09T08:53:20Z"])
    assert said.count("1 of 2 times lie before 2000, the first of them at 1970-01-01T00:00:01Z\n") == 2
    assert "--time-unit" not in said

"""A quick benchmark gives the figures that a long one gives, and keeps them with the machine's facts."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from benchmarks import omission
from benchmarks.__main__ import NAMES
from benchmarks.harness import keep, machine
from benchmarks.latency import quantile

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_omission_gives_speed_and_retention(tmp_path: Path) -> None:
    said: list[str] = []
    result = omission.run(True, said.append)
    assert said
    speeds = [row["tuples/s"] for row in result.rows if "tuples/s" in row]
    assert len(speeds) == 4 and all(isinstance(speed, int) and speed > 0 for speed in speeds)
    # Both forms decide the same, so they retain the same.
    for keys in ("1 key", "250 keys"):
        batch, stream = (result.row(f"{form}, {keys}") for form in ("batch kernel", "stream form"))
        assert batch["retained per interval"] == stream["retained per interval"]
    for row in result.rows:
        if row.get("design") is not None:
            measured, expected = row["retained per interval"], row["design"]
            assert isinstance(measured, float) and isinstance(expected, float)
            assert expected / 2 < measured < expected * 2
    document = orjson.loads(keep(result, machine(), 1.0, tmp_path).read_bytes())
    assert document["machine"]["cores"] > 0
    assert document["rows"] == list(result.rows)


def test_each_benchmark_is_a_file_and_explained() -> None:
    page = (BENCHMARKS / "README.md").read_text()
    for name in NAMES:
        assert (BENCHMARKS / f"{name}.py").exists()
        assert f"`{name}`" in page


def test_quantile_is_linear_within_its_bucket() -> None:
    buckets = {0.1: 0.0, 0.2: 50.0, 0.5: 100.0, float("inf"): 100.0}
    assert quantile(buckets, 0.25) == pytest.approx(0.15)
    assert quantile(buckets, 0.75) == pytest.approx(0.35)
    # All that is known of what lies beyond the last bound is that bound.
    assert quantile({0.5: 1.0, float("inf"): 100.0}, 0.99) == 0.5

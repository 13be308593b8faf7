"""Replay of the demo's alerts over its real readings: the same alarms with and without Tamis."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.local.demo_check import ALERTS, STREAM, prepare

READINGS = 18_914


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    places = prepare(tmp_path_factory.mktemp("places"), speed=1.0)
    return [argument for place in places for argument in ("--input", f"{STREAM}={place.recording}")]


def test_the_demo_misses_nothing_and_raises_nothing_extra(inputs: list[str]) -> None:
    result = CliRunner().invoke(main, ["verify", str(ALERTS), *inputs, "--json"])
    assert result.exit_code == 0, result.output
    verdicts = orjson.loads(result.stdout)
    assert [v["query"] for v in verdicts] == ["condensation", "heat_stress", "runaway"]
    for verdict in verdicts:
        assert (verdict["missed"], verdict["extra"], verdict["late"]) == (0, 0, 0), verdict
        assert verdict["tuples"] == READINGS
        assert verdict["reference_alarms"] > 1_000, "an alert that is never raised shows nothing"
        assert verdict["retained"] < READINGS / 3, verdict


@pytest.mark.parametrize(
    "alert", ["condensation", "runaway", pytest.param("heat_stress", marks=pytest.mark.soundness)]
)
def test_run_yields_as_many_rows_as_verify_counts_by_itself(
    inputs: list[str], alert: str, tmp_path: Path
) -> None:
    """One alert alone: its rows are those of `verify` where the file has no other alert."""
    head, *statements = ALERTS.read_text().split("CREATE ALERT ")
    only = next(one for one in statements if one.startswith(alert))
    file = tmp_path / "one.sql"
    file.write_text(f"{head}CREATE ALERT {only}")
    verified = CliRunner().invoke(main, ["verify", str(file), *inputs, "--json"])
    assert verified.exit_code == 0, verified.output
    rows = CliRunner().invoke(main, ["run", str(ALERTS), "--query", alert, *inputs]).stdout.splitlines()
    assert len(rows) - 1 == orjson.loads(verified.stdout)[0]["alarms"] > 0

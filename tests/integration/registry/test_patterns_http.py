"""Patterns over the registry's HTTP API and from the command line, on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tamis.cli import main

VIB = "CREATE STREAM vib (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
ALERT = (
    "CREATE ALERT shaken AS SELECT k, similarity(v, 'fault') AS d FROM vib WHERE similar(v, 'fault', 0.5);"
)


def test_patterns_are_applied_shown_and_dropped(
    fresh: str, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = start(fresh).ready()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fault.csv").write_text("t,volts\n0,0\n1,2\n3,6\n")
    (tmp_path / "a.sql").write_text(
        f"{VIB}\nCREATE PATTERN fault FROM 'fault.csv' WITH (time = 't', step = '1 s');\n{ALERT}"
    )
    environment = {"TAMIS_REGISTRY": registry.server.url}

    def tamis(*arguments: str) -> Any:
        return CliRunner(env=environment).invoke(main, list(arguments))

    applied = tamis("apply", "a.sql")
    assert applied.exit_code == 0, applied.output
    assert "fault.csv: 4 values, one every 1 s" in applied.stderr
    assert registry.get("patterns/FAULT")["sql"] == "CREATE PATTERN fault VALUES (0, 2, 4, 6)"
    (listed,) = registry.get("patterns")
    assert (listed["name"], listed["readers"], "sql" in listed) == ("fault", ["alert 'shaken'"], False)
    shown = tamis("get", "patterns").output.splitlines()
    assert shown[1].split() == ["fault", "pattern", "4", "3600", "s", "alert", "'shaken'"]
    assert [stream["name"] for stream in registry.get("streams")] == ["vib"]
    # The plan in Kafka has the watched stream, whose shards are those of its base.
    plan = registry.get(f"plans/{registry.get('plans')[0]['version']}")
    assert [stream.get("base") for stream in plan["streams"]] == [None, "vib"]
    assert registry.call("DELETE", "/v1/patterns/fault").status_code == 409
    assert tamis("drop", "alert", "shaken").exit_code == 0
    dropped = tamis("drop", "pattern", "fault")
    assert (dropped.exit_code, "pattern fault dropped" in dropped.output) == (0, True)
    assert registry.get("patterns") == []

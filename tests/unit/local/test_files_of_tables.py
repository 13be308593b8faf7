"""The files that the registry of `tamis up` may read: those of its own tables, or those of TAMIS_TABLES."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.local.fleet import Fleet, FleetSpec


@pytest.mark.parametrize("own", [None, "/srv/tables"])
def test_the_registry_gets_the_files_of_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAMIS_TABLES", raising=False)
    if own is not None:
        monkeypatch.setenv("TAMIS_TABLES", own)
    for name in ("lots.csv", "a:b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    fleet = Fleet(FleetSpec(tmp_path / "fleet", []), print)
    fleet.bootstrap = "127.0.0.1:1"  # nothing listens there
    fleet._launch_registry(
        ["lots.csv", str(tmp_path / "lots.csv"), "a:b.csv", "none.csv", "http://x/y.csv", "."]
    )
    process = fleet.processes["registry"]
    try:
        running = process._process
        assert running is not None
        environment = Path(f"/proc/{running.pid}/environ").read_text().split("\0")
    finally:
        process.ask_to_stop()
        process.stop()
    wanted = own if own is not None else os.path.join(tmp_path, "lots.csv")
    assert [one for one in environment if one.startswith("TAMIS_TABLES=")] == [f"TAMIS_TABLES={wanted}"]

"""Fault 8: no room on the disks of the edge (spool and journal) and of the joiner (checkpoint).

`tests/integration/edge/test_full_disk.py` has the states of an edge with a full disk; this test has the
alarms.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.faults.loaded_fleet import LoadedFleet, loaded_fleet
from tests.fixtures.small_disk import fill, small_disk

from tamis.local.fleet import TRY_AGAIN
from tamis_edge.storage.disk import RESERVE

EDGE_DISK = RESERVE + 18 * 2**20
JOINER_DISK = 128 * 2**20
pytestmark = [pytest.mark.faults, pytest.mark.timeout(2400)]


def test_disks_of_edge_and_joiner_are_full(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    with (
        small_disk(fleet / "edge", EDGE_DISK) as edge,
        small_disk(fleet / "joiner", JOINER_DISK) as joiner,
        loaded_fleet(tmp_path, seed=8) as fed,
    ):
        fed.begin()
        _fill_edge(fed, edge)
        said = _fill_joiner(fed, joiner)
        fed.said(f"full disks of edge and joiner; the joiner said {said!r}", fed.check())


def _fill_edge(fed: LoadedFleet, disk: Path) -> None:
    """Fill the edge's disk while Kafka is away, then give it Kafka, and room later."""
    first = fed.load.second
    fed.fleet.broker.stop()
    fill(disk, 2 * 2**20)
    rows = fed.load.walk("air", fed.load.second + 1)
    fed.load.second += 1
    while fed.load.offer("air", rows):
        rows = fed.load.walk("air", fed.load.second + 1)
        fed.load.second += 1
    fill(disk)
    telemetry = fed.fleet.telemetry["edge"]
    fed.wait("it says so", lambda: "disk: " in httpx.get(f"{telemetry}/readyz").text, 60)
    fed.fleet.broker.start()
    (disk / "ballast").unlink()
    # The readings that it refused, and those that surface lacks, come now.
    fed.load.post("air", rows)
    last, fed.load.second = fed.load.second, first
    fed.load.until(last, only="surface")


def _fill_joiner(fed: LoadedFleet, disk: Path) -> str:
    """Fill the joiner's disk under load. It must end with a clear error, and go on where there is room."""
    joiner = fed.fleet.processes["joiner"]
    fill(disk)
    with fed.load.running(pause=0.3):
        fed.wait("the joiner ends", lambda: joiner.exit_code() is not None)
    assert joiner.exit_code() == TRY_AGAIN
    said = joiner.last_error() or ""
    assert "No space left on device" in said and f"{disk} has " in said, said
    (disk / "ballast").unlink()
    joiner.start()
    return said

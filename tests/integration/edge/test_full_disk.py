"""The edge on a disk that is full: it takes nothing more, loses nothing, and goes on by itself."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.fixtures.small_disk import fill, small_disk
from tests.integration.edges import Bench, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis_edge.storage.disk import RESERVE

# The disk: the reserve of an edge by default, and some megabytes for what it stores.
SIZE = RESERVE + 18 * 2**20
T0 = 1_700_000_000_000_000


def test_a_full_disk_and_then_kafka_back(bench: Bench, tmp_path: Path) -> None:
    accepted = 0

    def post() -> int:
        nonlocal accepted
        readings = [
            {"station": f"k{i % 7}", "ts": T0 + i, "temp": 20.0, "note": "x" * 100}
            for i in range(accepted, accepted + 500)
        ]
        status = edge.post("air", readings).status_code
        if status == 202:
            accepted += len(readings)
        return status

    with small_disk(tmp_path / "small", SIZE) as disk:
        bench.publish(everything("air:small/http"))
        edge = bench.edge("small").start()
        wait_for("a reading is taken", lambda: post() == 202)
        reader = bench.reader(TOPIC)
        wait_for("a plan is obeyed", lambda: len(reader.of("tuple")) == accepted)
        bench.broker.stop()
        wait_for("a spool", lambda: post() == 202 and edge.metric("tamis_edge_spool_records") > 3000)
        fill(disk, 2 * 2**20)
        # Spool and journal take what is left, then nothing.
        wait_for("it is full", lambda: post() == 503)

        def says_so() -> bool:
            fill_beside_reserve(disk)  # the edge may have given pages back since
            return "disk: " in httpx.get(f"{edge.telemetry}/readyz").text

        wait_for("it says so", says_so)
        assert httpx.get(f"{edge.telemetry}/healthz").status_code == 200
        bench.broker.start()
        reader = bench.reader(TOPIC)

        def all_there() -> bool:
            edge.process.is_ready()  # an edge that has ended says how
            return {m.tuple["ts"] - T0 for m in reader.of("tuple")} == set(range(accepted))

        wait_for("all that was accepted is in Kafka", all_there)
        # The ballast is still there: what Kafka has makes the room.
        wait_for("readings are taken again", lambda: post() == 202)
        wait_for("the new ones too", all_there)
        wait_for("an empty spool", lambda: edge.metric("tamis_edge_spool_records") == 0)
        fill(disk)
        edge.kill()
        edge.process.start()
        wait_for("it is up again", lambda: answers(edge.http))

        def refused_once_full() -> bool:
            fill(disk)  # the edge gives room back when it opens its databases
            return post() == 503

        wait_for("it is full again", refused_once_full)
        (disk / "ballast").unlink()
        wait_for("readings are taken where there is room", lambda: post() == 202)
        wait_for("these, too", all_there)
        wait_for("it is ready", edge.process.is_ready)
        assert edge.metric("tamis_edge_disk_full") == 0
        edge.stop()


def fill_beside_reserve(disk: Path) -> None:
    """Take the room that is left but for that of the reserve, which the edge may have freed just now."""
    fill(disk, RESERVE - (disk / "reserve").stat().st_size)


def answers(url: str) -> bool:
    """True if the edge serves HTTP."""
    try:
        return httpx.get(url).status_code == 404
    except httpx.TransportError:
        return False

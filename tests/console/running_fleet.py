"""A whole fleet whose sensors send readings as of now, for the tests and the pictures of the console."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
from tests.console.conftest import SQL

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec

STATIONS = 4
PAUSE_SECONDS = 0.5
# Seconds in which the air of a station becomes damp and dry again.
PERIOD = 40


@contextmanager
def running_fleet(directory: Path) -> Iterator[Fleet]:
    """A fleet with the streams and the alert of demo/first. Its stations send readings of `air` and `surface`
    twice a second; some of them raise alarms, and some can't be used.
    """
    fleet = Fleet(FleetSpec(directory, (EdgeSpec("kitchen"),), partitions=2), lambda _: None)
    stopping = threading.Event()
    try:
        fleet.start({"alerts.sql": SQL})
        sensors = threading.Thread(target=_send, args=(fleet.http_sources["kitchen"], stopping))
        sensors.start()
        try:
            yield fleet
        finally:
            stopping.set()
            sensors.join()
    finally:
        fleet.stop()


def _send(url: str, stopping: threading.Event) -> None:
    numbers = random.Random(1)
    with httpx.Client(base_url=url, timeout=30) as client:
        turn = 0
        while not stopping.wait(PAUSE_SECONDS):
            now = time.time_ns() // 1000
            air = [_air(numbers, n, now) for n in range(STATIONS)]
            if turn % 20 == 0:
                air.append({**air[0], "rh": 120.0})  # outside of the declared domain
            _post(client, "air", air)
            _post(client, "surface", [_surface(numbers, n, now) for n in range(STATIONS)])
            turn += 1


def _post(client: httpx.Client, stream: str, rows: list[dict[str, Any]]) -> None:
    lines = b"\n".join(orjson.dumps(row) for row in rows)
    kind = {"content-type": "application/x-ndjson"}
    client.post(f"/v1/streams/{stream}", content=lines, headers=kind).raise_for_status()


def _air(numbers: random.Random, station: int, now: int) -> dict[str, Any]:
    damp = math.sin(2 * math.pi * now / 1e6 / PERIOD + station)
    temp, rh = 21 + damp + numbers.gauss(0, 0.2), 45 + 8 * damp + numbers.gauss(0, 0.5)
    return {"station": f"k{station + 1}", "ts": now, "temp": round(temp, 2), "rh": round(rh, 1)}


def _surface(numbers: random.Random, station: int, now: int) -> dict[str, Any]:
    return {"station": f"k{station + 1}", "ts": now, "temp": round(11.0 + numbers.gauss(0, 0.3), 2)}

"""Sensors that fall silent, in real time, in a fleet whose edge and joiner are killed.

One sensor dies early. Then all others die, so that no reading moves the event time any more: `idle_timeout`
lets it follow the clock. Each silence gives one alarm, with the last reading before it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from tests.e2e.one_fleet.conftest import OneFleet

READINGS = "readings.sensors"
LENGTH = 8_000_000
SENSORS = ("a", "b", "c", "d")
SQL = """
CREATE STREAM sensors (
  sensor VARCHAR KEY, ts TIMESTAMP NOT NULL, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (idle_timeout = '4 seconds');
CREATE ALERT silent AS SELECT sensor, ts FROM sensors WHERE NO READING FOR INTERVAL '8' SECOND;
CREATE ALERT unanswered AS SELECT s.sensor, s.ts FROM sensors s WHERE s.v > 90 AND NOT EXISTS (
  SELECT 1 FROM sensors n WHERE n.sensor = s.sensor AND n.v < 10
  AND n.ts BETWEEN s.ts AND s.ts + INTERVAL '2' SECOND);
"""


class Sensors:
    """Readings as of now, one of each living sensor at a time. Every tenth is high, and a low one answers
    every other of these.
    """

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self.sent: dict[str, list[tuple[int, float]]] = {sensor: [] for sensor in SENSORS}

    def send(self, alive: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for sensor in alive:
                number, now = len(self.sent[sensor]), time.time_ns() // 1000
                v = 95.0 if number % 10 == 0 else 5.0 if number % 20 == 2 else 50.0
                self.sent[sensor].append((now, v))
                value = orjson.dumps({"sensor": sensor, "ts": now, "v": v})
                self._producer.produce(READINGS, value, partition=SENSORS.index(sensor) % 2)
            self._producer.flush()
            time.sleep(0.2)

    def unanswered(self) -> set[tuple[str, int]]:
        return {
            (sensor, at)
            for sensor, readings in self.sent.items()
            for at, v in readings
            if v > 90 and not any(w < 10 and at <= then <= at + 2_000_000 for then, w in readings)
        }


def raised(fed: OneFleet) -> dict[str, list[dict[str, Any]]]:
    """The alarms by alert, each identity once."""
    found = fed.alarms()
    return {name: found.get(name, []) for name in ("silent", "unanswered")}


@pytest.mark.timeout(400)
def test_each_silence_gives_one_alarm(tmp_path: Path, one_fleet: OneFleet) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(f"sources:\n  - {{name: sensors, kind: kafka, topic: {READINGS}, stream: sensors}}\n")
    one_fleet.create(READINGS)
    one_fleet.apply(SQL)
    sensors = Sensors(one_fleet.bootstrap)
    with one_fleet.edge("sensors", config) as edge:
        sensors.send("abcd", 4)
        sensors.send("bcd", 4)  # from now on, a is dead
        for process in (edge, one_fleet.fleet.processes["joiner"]):
            process.kill()
            sensors.send("bcd", 2)
            process.start()
            sensors.send("bcd", 8)
        wanted = {sensor: readings[-1][0] for sensor, readings in sensors.sent.items()}
        unanswered = sensors.unanswered()
        deadline = time.monotonic() + 120
        found = raised(one_fleet)
        counts = (len(SENSORS), len(unanswered))
        while (len(found["silent"]), len(found["unanswered"])) != counts and time.monotonic() < deadline:
            time.sleep(2)
            found = raised(one_fleet)
        assert {(a["row"]["sensor"], a["row"]["ts"]) for a in found["silent"]} == set(wanted.items())
        assert len(found["silent"]) == len(SENSORS)
        assert all(alarm["event_time"] == alarm["row"]["ts"] + LENGTH for alarm in found["silent"])
        assert {(a["row"]["sensor"], a["row"]["ts"]) for a in found["unanswered"]} == unanswered
        assert len(unanswered) > 3

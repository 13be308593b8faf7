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
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS
from tamis.settings import KafkaSettings

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


def raised(bootstrap: str) -> dict[str, list[dict[str, Any]]]:
    """The alarms by alert, each identity once."""
    with TopicReader(KafkaSettings(bootstrap=bootstrap).client_config(), [ALARMS]) as reader:
        records = [orjson.loads(record.value) for record in reader.snapshot() if record.value is not None]
    found: dict[str, list[dict[str, Any]]] = {"silent": [], "unanswered": []}
    for record in {one["id"]: one for one in records}.values():
        found[record["alert"]].append(record)
    return found


@pytest.mark.timeout(400)
def test_each_silence_gives_one_alarm(tmp_path: Path) -> None:
    (tmp_path / "edge.yaml").write_text(
        f"sources:\n  - {{name: sensors, kind: kafka, topic: {READINGS}, stream: sensors}}\n"
    )
    spec = FleetSpec(tmp_path / "fleet", [EdgeSpec("edge", tmp_path / "edge.yaml")], partitions=2)
    fleet = Fleet(spec, lambda _: None)
    try:
        bootstrap = fleet.broker.start()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(READINGS, 2, 1)])[READINGS].result()
        fleet.start({"alerts.sql": SQL})
        sensors = Sensors(bootstrap)
        sensors.send("abcd", 4)
        sensors.send("bcd", 4)  # from now on, a is dead
        for killed in ("edge", "joiner"):
            process = fleet.processes[killed]
            process.kill()
            sensors.send("bcd", 2)
            process.start()
            sensors.send("bcd", 8)
        wanted = {sensor: readings[-1][0] for sensor, readings in sensors.sent.items()}
        unanswered = sensors.unanswered()
        deadline = time.monotonic() + 120
        found = raised(bootstrap)
        counts = (len(SENSORS), len(unanswered))
        while (len(found["silent"]), len(found["unanswered"])) != counts and time.monotonic() < deadline:
            time.sleep(1)
            found = raised(bootstrap)
        assert {(a["row"]["sensor"], a["row"]["ts"]) for a in found["silent"]} == set(wanted.items())
        assert len(found["silent"]) == len(SENSORS)
        assert all(alarm["event_time"] == alarm["row"]["ts"] + LENGTH for alarm in found["silent"])
        assert {(a["row"]["sensor"], a["row"]["ts"]) for a in found["unanswered"]} == unanswered
        assert len(unanswered) > 3
    finally:
        fleet.stop()

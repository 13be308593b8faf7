"""Alerts that begin with the history of their streams, in a fleet whose edges and joiner are killed.

Readings of hours are in the topics before the alerts are created, and new ones arrive all the time. One part
of the history of a topic was deleted before. The alarms are those of DuckDB over all readings that the topics
still have, each once.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import httpx
import orjson
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS
from tamis.settings import KafkaSettings

SECOND = 1_000_000
AIR, SURFACE = "readings.air", "readings.surface"
STATIONS = 5
HISTORY = 6_000  # seconds of event time before the alerts
DELETED = 400  # readings of each partition of AIR that Kafka has deleted
WINDOW = 20 * SECOND
STREAMS = """
CREATE STREAM air (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes', keys = 5, rate = '2/s');
CREATE STREAM surface (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes', keys = 5, rate = '2/s');
CREATE STREAM yard (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes');
CREATE ALERT live AS SELECT station, ts, temp FROM air WHERE temp > 65;
"""
# No tuple is omitted, so that all rows can be compared.
JOIN = """SELECT a.station, a.ts, s.ts AS other FROM air a JOIN surface s
  ON a.station = s.station AND a.ts BETWEEN s.ts - {0} AND s.ts + {0}
  WHERE MOD(a.temp + s.temp + 200, 40) < 1"""
COUNT = "SELECT station, count(*) AS n, max(temp) AS most FROM {0} WHERE temp > 20 GROUP BY station, {1}"
BACKFILL = f"""
CREATE ALERT apart WITH (from = 'earliest') AS {JOIN.format("INTERVAL '3' SECOND")};
CREATE ALERT counted WITH (from = '{{since}}') AS
  {COUNT.format(f"TUMBLE(air, ts, INTERVAL '{WINDOW} MICROSECONDS')", "window_start")};
CREATE ALERT cold WITH (from = 'earliest') AS SELECT station, ts FROM yard WHERE temp < -50;
"""
Row = tuple[Any, ...]


class Readings:
    """Readings of each stream in the order of time, with some that are a second out of order."""

    def __init__(self, bootstrap: str, start: int) -> None:
        # Readings that are sent again must not change places with others.
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._random = random.Random(5)
        self.start = self.now = start
        self.sent: dict[str, list[list[Row]]] = {AIR: [[], []], SURFACE: [[], []]}

    def send(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += SECOND
            for topic, partitions in self.sent.items():
                for row in self.second():
                    at = row[0] % len(partitions)
                    partitions[at].append(row)
                    self._producer.produce(topic, reading(row), partition=at)
        self._producer.flush()

    def second(self) -> Iterator[Row]:
        for station in range(STATIONS):
            late = self._random.randint(0, SECOND)
            yield station, self.now - late, self._random.randint(-60, 70)

    def remaining(self, topic: str) -> list[Row]:
        """The readings that Kafka still has."""
        first = DELETED if topic == AIR else 0
        return [row for partition in self.sent[topic] for row in partition[first:]]


def reading(row: Row) -> bytes:
    return orjson.dumps(dict(zip(("station", "ts", "temp"), row, strict=True)))


def wanted(readings: Readings, yard: Sequence[Row], since: int, watermark: int) -> dict[str, Counter[Row]]:
    """The rows of each alert by DuckDB. Of windows, those that end before `watermark`."""
    with duckdb.connect() as base:
        for name, rows in (
            ("air", readings.remaining(AIR)),
            ("surface", readings.remaining(SURFACE)),
            ("yard", yard),
        ):
            station, ts, temp = zip(*rows, strict=True)
            base.register(
                name, pa.table({"station": station, "ts": ts, "temp": pa.array(temp, pa.float64())})
            )
        queries = {
            "apart": JOIN.format(3 * SECOND),
            "counted": COUNT.format(
                f"(FROM air WHERE ts >= {since} AND ts // {WINDOW} * {WINDOW} + {WINDOW} <= {watermark})",
                f"ts // {WINDOW}",
            ),
            "cold": "SELECT station, ts FROM yard WHERE temp < -50",
        }
        return {name: Counter(map(tuple, base.execute(sql).fetchall())) for name, sql in queries.items()}


def raised(bootstrap: str) -> dict[str, Counter[Row]]:
    """The rows of the alarms by alert, each identity once."""
    with TopicReader(KafkaSettings(bootstrap=bootstrap).client_config(), [ALARMS]) as reader:
        records = [orjson.loads(record.value) for record in reader.snapshot() if record.value is not None]
    found: dict[str, Counter[Row]] = {"apart": Counter(), "counted": Counter(), "cold": Counter()}
    for record in {one["id"]: one for one in records}.values():
        if record["alert"] in found:
            found[record["alert"]][tuple(record["row"].values())] += 1
    return found


@pytest.mark.timeout(600)
def test_history_and_new_readings_raise_each_alarm_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        file = "\n  - {name: yard, kind: file, path: yard.csv, stream: yard}" if name == "one" else ""
        (tmp_path / f"{name}.yaml").write_text(f"""
sources:
  - {{name: air, kind: kafka, topic: {AIR}, stream: air}}
  - {{name: surface, kind: kafka, topic: {SURFACE}, stream: surface}}{file}
batch: {{rows: 100}}
""")
    edges = [EdgeSpec(name, tmp_path / f"{name}.yaml") for name in ("one", "two")]
    fleet = Fleet(FleetSpec(tmp_path / "fleet", edges, partitions=2), lambda _: None)
    try:
        bootstrap = fleet.broker.start()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic(name, 2, 1) for name in (AIR, SURFACE)]).values():
            future.result()
        start = time.time_ns() // 1000 - 2 * HISTORY * SECOND
        readings = Readings(bootstrap, start // WINDOW * WINDOW)
        yard = [row for _ in range(200) for row in readings.second()]
        text = "\n".join(",".join(map(str, row)) for row in yard)
        (tmp_path / "yard.csv").write_text(f"station,ts,temp\n{text}\n")
        readings.send(HISTORY)
        ends = [TopicPartition(AIR, partition, DELETED) for partition in (0, 1)]
        for deleted in admin.delete_records(ends).values():
            deleted.result()
        fleet.start({"streams.sql": STREAMS})
        readings.send(20)
        time.sleep(10)
        since = readings.start + 1_000 * SECOND + 7
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since // SECOND)) + f".{since % SECOND:06}Z"
        fleet.apply(BACKFILL.format(since=when))
        shards: dict[str, Any] = {}
        deadline = time.monotonic() + 60
        while not shards and time.monotonic() < deadline:
            time.sleep(0.1)
            shards = alert(fleet, "apart")["history"]["shards"]
        for killed in ("one", "joiner", "two"):
            process = fleet.processes[killed]
            process.kill()
            readings.send(5)
            process.start()
            readings.send(5)
        # To the middle of a window, so that the watermark is clearly in it.
        readings.send(60 + (WINDOW // 2 - readings.now) % WINDOW // SECOND)
        passed = readings.now // WINDOW * WINDOW
        expected = wanted(readings, yard, since, passed)
        assert all(len(rows) > 50 for rows in expected.values())
        deadline = time.monotonic() + 180
        found = raised(bootstrap)
        while not matches(found, expected) and time.monotonic() < deadline:
            time.sleep(1)
            found = raised(bootstrap)
        for name, rows in expected.items():
            missing, extra = rows - found[name], found[name] - rows
            assert not missing and not extra, f"{name}: missing {missing}, extra {extra}"
        # Every shard of the history was read from its beginning, and says what was there.
        shown = alert(fleet, "apart")
        while shown["state"] != "running" and time.monotonic() < deadline:
            time.sleep(1)
            shown = alert(fleet, "apart")
        firsts = {name: shard["first_offset"] for name, shard in shown["history"]["shards"].items()}
        assert shown["state"] == "running", shown
        assert sorted(firsts.values()) == [0, 0, DELETED, DELETED], shown
        least = min(row[1] for row in readings.remaining(AIR) + readings.remaining(SURFACE))
        assert shown["history"]["event_time"] == least
        assert alert(fleet, "counted")["history"]["event_time"] == since
    finally:
        fleet.stop()


def alert(fleet: Fleet, name: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{fleet.registry_url}/v1/alerts/{name}").raise_for_status().json()
    return found


def matches(found: dict[str, Counter[Row]], expected: dict[str, Counter[Row]]) -> bool:
    return all(found[name] == rows for name, rows in expected.items())

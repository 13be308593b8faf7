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
import orjson
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.e2e.fed_fleet import until
from tests.e2e.one_fleet.conftest import OneFleet

SECOND = 1_000_000
ROOF, GROUND = "readings.roof", "readings.ground"
STATIONS = 5
HISTORY = 6_000  # seconds of event time before the alerts
DELETED = 400  # readings of each partition of ROOF that Kafka has deleted
WINDOW = 20 * SECOND
STREAMS = """
CREATE STREAM roof (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes', keys = 5, rate = '2/s');
CREATE STREAM ground (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes', keys = 5, rate = '2/s');
CREATE STREAM yard (
  station INT KEY, ts TIMESTAMP NOT NULL, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (max_stall = '5 minutes');
CREATE ALERT live AS SELECT station, ts, temp FROM roof WHERE temp > 65;
"""
# No tuple is omitted, so that all rows can be compared.
JOIN = """SELECT a.station, a.ts, s.ts AS other FROM roof a JOIN ground s
  ON a.station = s.station AND a.ts BETWEEN s.ts - {0} AND s.ts + {0}
  WHERE MOD(a.temp + s.temp + 200, 40) < 1"""
COUNT = "SELECT station, count(*) AS n, max(temp) AS most FROM {0} WHERE temp > 20 GROUP BY station, {1}"
BACKFILL = f"""
CREATE ALERT distant WITH (from = 'earliest') AS {JOIN.format("INTERVAL '3' SECOND")};
CREATE ALERT counted WITH (from = '{{since}}') AS
  {COUNT.format(f"TUMBLE(roof, ts, INTERVAL '{WINDOW} MICROSECONDS')", "window_start")};
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
        self.sent: dict[str, list[list[Row]]] = {ROOF: [[], []], GROUND: [[], []]}

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
        first = DELETED if topic == ROOF else 0
        return [row for partition in self.sent[topic] for row in partition[first:]]


def reading(row: Row) -> bytes:
    return orjson.dumps(dict(zip(("station", "ts", "temp"), row, strict=True)))


def wanted(readings: Readings, yard: Sequence[Row], since: int, watermark: int) -> dict[str, Counter[Row]]:
    """The rows of each alert by DuckDB. Of windows, those that end before `watermark`."""
    with duckdb.connect() as base:
        for name, rows in (
            ("roof", readings.remaining(ROOF)),
            ("ground", readings.remaining(GROUND)),
            ("yard", yard),
        ):
            station, ts, temp = zip(*rows, strict=True)
            base.register(
                name, pa.table({"station": station, "ts": ts, "temp": pa.array(temp, pa.float64())})
            )
        queries = {
            "distant": JOIN.format(3 * SECOND),
            "counted": COUNT.format(
                f"(FROM roof WHERE ts >= {since} AND ts // {WINDOW} * {WINDOW} + {WINDOW} <= {watermark})",
                f"ts // {WINDOW}",
            ),
            "cold": "SELECT station, ts FROM yard WHERE temp < -50",
        }
        return {name: Counter(map(tuple, base.execute(sql).fetchall())) for name, sql in queries.items()}


def raised(fed: OneFleet) -> dict[str, Counter[Row]]:
    """The rows of the alarms by alert, each identity once."""
    found = fed.alarms()
    return {
        name: Counter(tuple(alarm["row"].values()) for alarm in found.get(name, ()))
        for name in ("distant", "counted", "cold")
    }


@pytest.mark.timeout(600)
def test_history_and_new_readings_raise_each_alarm_once(tmp_path: Path, one_fleet: OneFleet) -> None:
    for name in ("one", "two"):
        file = "\n  - {name: yard, kind: file, path: yard.csv, stream: yard}" if name == "one" else ""
        (tmp_path / f"{name}.yaml").write_text(f"""
sources:
  - {{name: roof, kind: kafka, topic: {ROOF}, stream: roof}}
  - {{name: ground, kind: kafka, topic: {GROUND}, stream: ground}}{file}
batch: {{rows: 100}}
""")
    one_fleet.create(ROOF, GROUND)
    start = time.time_ns() // 1000 - 2 * HISTORY * SECOND
    readings = Readings(one_fleet.bootstrap, start // WINDOW * WINDOW)
    yard = [row for _ in range(200) for row in readings.second()]
    text = "\n".join(",".join(map(str, row)) for row in yard)
    (tmp_path / "yard.csv").write_text(f"station,ts,temp\n{text}\n")
    readings.send(HISTORY)
    admin = AdminClient({"bootstrap.servers": one_fleet.bootstrap})
    ends = [TopicPartition(ROOF, partition, DELETED) for partition in (0, 1)]
    for deleted in admin.delete_records(ends).values():
        deleted.result()
    one_fleet.apply(STREAMS)
    with (
        one_fleet.edge("one", tmp_path / "one.yaml") as one,
        one_fleet.edge("two", tmp_path / "two.yaml") as two,
    ):
        readings.send(20)
        time.sleep(10)
        since = readings.start + 1_000 * SECOND + 7
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since // SECOND)) + f".{since % SECOND:06}Z"
        one_fleet.apply(BACKFILL.format(since=when))
        until(lambda: bool(one_fleet.alert("distant")["history"]["shards"]))
        for process in (one, one_fleet.fleet.processes["joiner"], two):
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
        found = raised(one_fleet)
        while found != expected and time.monotonic() < deadline:
            time.sleep(2)
            found = raised(one_fleet)
        for name, rows in expected.items():
            missing, extra = rows - found[name], found[name] - rows
            assert not missing and not extra, f"{name}: missing {missing}, extra {extra}"
        # Every shard of the history was read from its beginning, and says what was there.
        one_fleet.running("distant")
        shown = one_fleet.alert("distant")
        firsts = {name: shard["first_offset"] for name, shard in shown["history"]["shards"].items()}
        assert sorted(firsts.values()) == [0, 0, DELETED, DELETED], shown
        least = min(row[1] for row in readings.remaining(ROOF) + readings.remaining(GROUND))
        assert shown["history"]["event_time"] == least
        assert one_fleet.alert("counted")["history"]["event_time"] == since

"""A pattern and a rise in joins, and an alert with `within`, in a fleet whose edge is killed, against verify.

The alert with `within` calls a function of Python. The vibrations of machines come from a Kafka topic with
two partitions, their loads over HTTP.
"""

from __future__ import annotations

import csv
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Producer
from tests.e2e.fed_fleet import until
from tests.e2e.one_fleet.conftest import FUNCTIONS, OneFleet

from tamis.expressions.python_functions import SETTING, clear_caches
from tamis.local.scrape import Scrape
from tamis.local.service_process import free_ports
from tamis.offline.recordings import watched_recording
from tamis.planning.build import first_plan
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording
from tamis.verification.compare import Verdict, alarms_of, compare
from tamis.verification.reference import plain_join
from tamis.verification.watched_columns import checked_recording

READINGS = "readings.vibration"
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
FAULT = (0.0, 2.0, 5.0, 9.0, 4.0, 1.0, 3.0, 0.0)
STREAMS = """
CREATE STREAM vibration (
  machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 4, rate = '2/s', max_ahead = '0');
CREATE STREAM load (
  machine VARCHAR KEY, ts TIMESTAMP, percent DOUBLE CHECK (percent BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = 4, rate = '2/s', max_ahead = '0');
"""
ALERTS = f"""
CREATE PATTERN fault VALUES {FAULT};
CREATE ALERT failing AS
SELECT v.machine, v.ts, similarity(v.value, 'fault') AS distance, l.percent
FROM vibration v JOIN load l ON v.machine = l.machine AND ABS(v.ts - l.ts) <= INTERVAL '60' SECOND
WHERE similar(v.value, 'fault', 0.8) AND l.percent > 80;
CREATE ALERT jumping AS
SELECT v.machine, v.ts, v.value - v.before AS rise, l.percent
FROM (SELECT *, lag(value) OVER (PARTITION BY machine ORDER BY ts) AS before FROM vibration) v
JOIN load l ON v.machine = l.machine AND ABS(v.ts - l.ts) <= INTERVAL '60' SECOND
WHERE v.value - v.before > 5 AND l.percent > 80;
CREATE FUNCTION bowl(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'bowl' QUASICONVEX;
CREATE ALERT loud WITH (within = '20 seconds') AS SELECT machine, ts FROM vibration WHERE bowl(value) >= 7;
"""
MACHINES = {"m0": 0, "m1": 0, "m2": 1, "m3": 1}  # machine -> partition


class Machines:
    """Vibrations that look like the fault now and then, and loads that are high now and then."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._second = 0
        self._faults: dict[str, Iterator[float]] = dict.fromkeys(MACHINES, iter(()))
        self.vibrations: list[dict[str, Any]] = []
        self.loads: list[dict[str, Any]] = []

    def run(self, bootstrap: str, url: str, seconds: int) -> None:
        """The readings of the next seconds, a little out of order."""
        r = self._random
        producer = Producer({"bootstrap.servers": bootstrap})
        with httpx.Client(timeout=10) as client:
            for _ in range(seconds):
                self._second += 1
                loads = []
                for machine, partition in MACHINES.items():
                    at = START + self._second * SECOND - r.choice((0,) * 19 + (1_500_000,))
                    one = {"machine": machine, "ts": at, "value": self._value(machine)}
                    self.vibrations.append(one)
                    producer.produce(READINGS, orjson.dumps(one), partition=partition)
                    if self._second % 10 == 0:
                        high = self._second // 100 % 2
                        loads.append(
                            {"machine": machine, "ts": at, "percent": round(r.uniform(0, 60) + 40 * high, 2)}
                        )
                self.loads += loads
                if loads:
                    answer = client.post(
                        f"{url}/v1/streams/load",
                        content=orjson.dumps(loads),
                        headers={"content-type": "application/json"},
                    )
                    answer.raise_for_status()
        producer.flush()

    def skip(self, seconds: int) -> None:
        self._second += seconds

    def _value(self, machine: str) -> float:
        r = self._random
        found = next(self._faults[machine], None)
        if found is not None:
            return found
        if r.random() < 0.05:
            scale, shift = r.uniform(0.5, 3), r.uniform(-5, 5)
            self._faults[machine] = iter(
                [round(scale * one + shift + r.uniform(-0.2, 0.2), 3) for one in FAULT]
            )
        return round(r.gauss(0, 2), 3)

    def recordings(self, catalog: Catalog, directory: Path) -> dict[str, Recording]:
        """All readings, as recordings of the streams that alerts read: a file for each shard."""
        sources = [source for alert in catalog.alerts.values() for source in alert.query.sources]
        files = {
            "vibration": [
                _write(directory / f"{p}.csv", [v for v in self.vibrations if MACHINES[v["machine"]] == p])
                for p in (0, 1)
            ],
            "load": [_write(directory / "load.csv", self.loads)],
        }
        found = {}
        for source in sources:
            stream = catalog.streams[source.stream]
            base = read_recording(
                catalog.streams[stream.shown_name], files[stream.shown_name], as_arrived=True
            )
            found[source.stream] = base if stream.base is None else watched_recording(base, stream)
        return found


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def judged(machines: Machines, fed: OneFleet, directory: Path) -> dict[str, Verdict]:
    """The verdict on each alert."""
    catalog = catalog_of(STREAMS, ALERTS)
    recordings = machines.recordings(catalog, directory)
    checked = {name: checked_recording(one) for name, one in recordings.items()}
    alarms = fed.alarms()
    found = {}
    for definition in first_plan(catalog, partitions=2).definitions:
        query = catalog.alerts[definition.alert].query
        raised = [alarm["tuples"] for alarm in alarms[definition.alert]]
        found[definition.alert] = compare(
            definition.alert,
            query,
            definition=definition,
            recordings=recordings,
            reference=plain_join(query, checked),
            alarms=alarms_of(query, recordings, raised),
            retained=0,
            checked=checked,
        )
    return found


@pytest.mark.timeout(600)
def test_no_alarm_is_missed_or_extra_when_the_edge_is_killed(
    tmp_path: Path, one_fleet: OneFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, FUNCTIONS)
    clear_caches()
    (port,) = free_ports(1)
    config = tmp_path / "edge.yaml"
    config.write_text(
        f"""
sources:
  - {{name: vibration, kind: kafka, topic: {READINGS}, stream: vibration}}
  - {{name: http, kind: http, streams: [load]}}
http: {{port: {port}}}
batch: {{rows: 50}}
"""
    )
    machines, bootstrap, url = Machines(seed=5), one_fleet.bootstrap, f"http://127.0.0.1:{port}"
    one_fleet.create(READINGS)
    one_fleet.apply(STREAMS)
    one_fleet.apply(ALERTS)

    def listening() -> bool:
        try:
            return httpx.get(f"{url}/v1/streams/load").status_code < 500
        except httpx.TransportError:
            return False

    try:
        with one_fleet.edge("machines", config) as edge:
            one_fleet.running("failing")
            for _ in range(4):
                machines.run(bootstrap, url, 150)
                time.sleep(0.7)
                edge.kill()
                edge.start()
                until(listening)
            machines.run(bootstrap, url, 150)
            end = machines.vibrations[-1]["ts"]
            # Readings far behind all others move the watermarks past them.
            machines.skip(7_200)
            machines.run(bootstrap, url, 30)
            until(lambda: one_fleet.passed(end // SECOND + 1, ("vibration", "load")), 120)
            verdicts = judged(machines, one_fleet, tmp_path)
            for verdict in verdicts.values():
                assert (verdict.missed, verdict.extra) == (0, 0), verdict
                assert verdict.reference_alarms > 100, verdict
                assert verdict.late == 0, verdict
            scrape = Scrape.of(one_fleet.fleet.telemetry["machines"])
            assert scrape.total("tamis_edge_saved_calls_total", stream="vibration") > 0
            assert verdicts["loud"].alarms < verdicts["loud"].reference_alarms
    finally:
        clear_caches()

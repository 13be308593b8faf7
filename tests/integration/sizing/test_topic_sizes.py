"""The bytes of a topic that the calculator predicts from a recording, beside the log that a broker writes."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from tests.integration.edges import PARTITIONS, Bench, wait_for

from tamis.local.broker import EmbeddedKafka
from tamis.messaging.records import END_OF_TIME
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.sizing.estimate import estimate
from tamis.sizing.figures import unit_costs
from tamis.sizing.fleet import Operation
from tamis.sizing.load import Given, load_of

SECOND = 1_000_000
T0 = 1_700_000_000 * SECOND
KEYS, STEPS = 20, 600
SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  firmware VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 20, rate = '1/s');
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 20, rate = '1/s');
CREATE ALERT warm AS SELECT a.station, a.temp - s.temp AS difference FROM air a JOIN surface s
  ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '10' SECOND
WHERE a.temp - s.temp > 5 AND a.temp > 0;
"""
CONFIG = """
sources:
  - {{kind: file, name: source, path: {path}, stream: air}}
"""


def write_walks(path: Path) -> None:
    """Random walks, one reading a second of each station."""
    chance = random.Random(2)
    levels = [10.0] * KEYS
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["station", "ts", "temp", "firmware"])
        for step in range(STEPS):
            for key in range(KEYS):
                levels[key] = 0.95 * levels[key] + chance.gauss(0.5, 1)
                rows.writerow([f"station-{key:05}", T0 + step * SECOND + key, round(levels[key], 2), "2.4.1"])


@pytest.mark.timeout(180)
def test_predicted_bytes_of_a_topic_are_those_of_its_log(empty: EmbeddedKafka, tmp_path: Path) -> None:
    path = tmp_path / "air.csv"
    write_walks(path)
    catalog = catalog_of(SQL)
    recording = read_recording(catalog.streams["air"], [str(path)])
    loads = {
        "air": load_of(catalog.streams["air"], Given(recording=recording)),
        "surface": load_of(catalog.streams["surface"], Given()),
    }
    found = estimate(catalog, loads, Operation(partitions=PARTITIONS), unit_costs())
    topic = "tamis.stream.air.1"
    predicted = next(part.figures for part in found.parts if (part.title, part.name) == ("topic", topic))
    retained = predicted["retained"].value * len(recording)
    assert 0.05 < predicted["retained"].value < 0.9

    bench = Bench(empty, tmp_path)
    try:
        bench.publish(first_plan(catalog, partitions=PARTITIONS, shards={"air:edge-00/source": "air"}))
        reader = bench.reader(topic)
        edge = bench.edge("edge-00", CONFIG.format(path=path)).start()
        wait_for(
            "the recording is read",
            lambda: any(m.envelope.get("event_time") == END_OF_TIME for m in reader.of("progress")),
        )
        edge.stop()
        tuples, others = len(reader.of("tuple")), len(reader.messages) - len(reader.of("tuple"))
        # Kafka deletes the files of a topic by and by; their directories have longer names.
        logs = empty.directory.rglob(f"{topic}-[0-9]/*.log")
        size = sum(log.stat().st_size for log in logs)
    finally:
        bench.close()
    # The batch form of omission retains what the edge retains of tuples in order.
    assert tuples == pytest.approx(retained, rel=0.02)
    # The recording comes at once: batches are full, and there is little progress.
    costs = unit_costs()
    expected = tuples * (predicted["record"].value + costs["kafka_record_overhead_bytes"])
    assert expected == pytest.approx(size - others * 200, rel=0.1)

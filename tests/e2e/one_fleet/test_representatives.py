"""Edges that publish representatives: few readings of queries without time travel, and no row is missing.

Edge and joiner are killed meanwhile. The rows are compared with DuckDB's over all readings.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import duckdb
import orjson
import pytest
from confluent_kafka import Producer
from tests.e2e.fed_fleet import until
from tests.e2e.one_fleet.conftest import OneFleet
from tests.rows_for_duckdb import insert

SECONDS = 120.0
PRESSES, OVENS = "readings.presses", "readings.ovens"
STREAMS = """
CREATE STREAM presses (id INT KEY, load INT NOT NULL, mode INT NOT NULL) WITH (keys = 6);
CREATE STREAM ovens (id INT KEY, heat INT NOT NULL, mode INT NOT NULL) WITH (keys = 6);
"""
QUERIES = {
    "strained": """SELECT DISTINCT p.id FROM presses p, ovens o
        WHERE p.id = o.id AND p.load + o.heat > 1990""",
    "apart": "SELECT DISTINCT p.id FROM presses p, ovens o WHERE p.id = o.id AND abs(p.load - o.heat) > 980",
    "unlike": """SELECT DISTINCT p.id FROM presses p, ovens o
        WHERE p.id = o.id AND p.mode != o.mode AND p.load != o.heat""",
    "loaded": "SELECT DISTINCT id FROM presses WHERE load > 990",
}
# It is created last: the greatest loads came before it, and don't count for it.
LATER = """SELECT DISTINCT p.id FROM presses p, ovens o WHERE p.id = o.id AND p.load + o.heat > 1200"""

Reading = tuple[int, int, int]


class Plant:
    """Readings of both streams in Kafka topics of two partitions."""

    def __init__(self, bootstrap: str) -> None:
        self.presses: list[Reading] = []
        self.ovens: list[Reading] = []
        self._random = random.Random(4)
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def send(self, count: int, most: int = 1000) -> None:
        """More readings, whose values are at most `most`."""
        for _ in range(count):
            for topic, value, sent in ((PRESSES, "load", self.presses), (OVENS, "heat", self.ovens)):
                row = self._random.randint(1, 6), self._random.randint(0, most), self._random.randint(0, 2)
                sent.append(row)
                record = orjson.dumps(dict(zip(("id", value, "mode"), row, strict=True)))
                self._producer.produce(topic, record, partition=self._random.randrange(2))
        self._producer.flush()

    def rows(self, sql: str, first: int = 0) -> set[int]:
        """The rows of a query by DuckDB, over the readings from the number `first` on."""
        with duckdb.connect() as base:
            base.execute("CREATE TABLE presses (id INT, load INT, mode INT)")
            base.execute("CREATE TABLE ovens (id INT, heat INT, mode INT)")
            insert(base, "presses", self.presses[first:])
            insert(base, "ovens", self.ovens[first:])
            return {id_ for (id_,) in base.execute(sql).fetchall()}


def rows(fleet: OneFleet, alert: str) -> set[int]:
    """The rows of an alert in Kafka."""
    return {alarm["row"]["id"] for alarm in fleet.alarms().get(alert, ())}


@pytest.mark.timeout(600)
def test_few_readings_travel_and_no_row_is_missing_over_kills(tmp_path: Path, one_fleet: OneFleet) -> None:
    fleet = one_fleet.fleet
    config = tmp_path / "edge.yaml"
    config.write_text(f"""
sources:
  - {{name: presses, kind: kafka, topic: {PRESSES}, stream: presses}}
  - {{name: ovens, kind: kafka, topic: {OVENS}, stream: ovens}}
""")
    one_fleet.create(PRESSES, OVENS)
    one_fleet.apply(STREAMS)
    one_fleet.apply("".join(f"CREATE ALERT {name} AS {sql};" for name, sql in QUERIES.items()))
    plant = Plant(one_fleet.bootstrap)
    with one_fleet.edge("plant", config) as edge:
        plant.send(3_000)
        until(lambda: all(rows(one_fleet, name) == plant.rows(sql) for name, sql in QUERIES.items()), SECONDS)
        for killed in (edge, fleet.processes["joiner"], edge):
            plant.send(500)
            time.sleep(0.5)
            killed.kill()
            plant.send(500)
            killed.start()
        until(lambda: all(rows(one_fleet, name) == plant.rows(sql) for name, sql in QUERIES.items()), SECONDS)
        first = len(plant.presses)
        one_fleet.apply(f"CREATE ALERT later AS {LATER};")
        one_fleet.running("later")
        plant.send(400, most=700)
        wanted = plant.rows(LATER, first)
        assert wanted
        until(lambda: rows(one_fleet, "later") == wanted, SECONDS)
        topics = [f"tamis.stream.{stream}.1" for stream in ("presses", "ovens")]
        sent = [one for topic in topics for one in one_fleet.records(topic) if "id" in orjson.loads(one)]
        print(len(sent), len(plant.presses))
        assert len(sent) < 0.25 * (len(plant.presses) + len(plant.ovens))

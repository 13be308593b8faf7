"""Readings of two streams without event time, whose edges publish representatives."""

from __future__ import annotations

import random

import duckdb
import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.e2e.fed_fleet import FedFleet
from tests.rows_for_duckdb import insert

_PRESSES, _OVENS = "readings.presses", "readings.ovens"
STREAMS = """
CREATE STREAM presses (id INT KEY, load INT NOT NULL, mode INT NOT NULL) WITH (keys = 6);
CREATE STREAM ovens (id INT KEY, heat INT NOT NULL, mode INT NOT NULL) WITH (keys = 6);
"""
CONFIG = f"""
sources:
  - {{name: presses, kind: kafka, topic: {_PRESSES}, stream: presses}}
  - {{name: ovens, kind: kafka, topic: {_OVENS}, stream: ovens}}
"""
JOINED = "SELECT DISTINCT p.id FROM presses p, ovens o WHERE p.id = o.id AND p.load + o.heat"

Reading = tuple[int, int, int]


class Plant:
    """Readings of both streams in Kafka topics of two partitions."""

    def __init__(self, bootstrap: str) -> None:
        self.presses: list[Reading] = []
        self.ovens: list[Reading] = []
        self._random = random.Random(4)
        self._producer = Producer({"bootstrap.servers": bootstrap})
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for made in admin.create_topics([NewTopic(one, 2, 1) for one in (_PRESSES, _OVENS)]).values():
            made.result(30)

    def send(self, count: int, most: int = 1000, *, presses_alone: bool = False) -> None:
        """More readings of each stream, whose values are at most `most`."""
        streams = ((_PRESSES, "load", self.presses), (_OVENS, "heat", self.ovens))
        for _ in range(count):
            for topic, value, sent in streams[: 1 if presses_alone else 2]:
                row = self._random.randint(1, 6), self._random.randint(0, most), self._random.randint(0, 2)
                sent.append(row)
                record = orjson.dumps(dict(zip(("id", value, "mode"), row, strict=True)))
                self._producer.produce(topic, record, partition=self._random.randrange(2))
        self._producer.flush()

    @property
    def sent(self) -> tuple[int, int]:
        """The numbers of presses and ovens that were sent."""
        return len(self.presses), len(self.ovens)

    def rows(self, sql: str, first: tuple[int, int] = (0, 0)) -> set[int]:
        """The rows of a query by DuckDB, over the presses and ovens from these numbers on."""
        with duckdb.connect() as base:
            base.execute("CREATE TABLE presses (id INT, load INT, mode INT)")
            base.execute("CREATE TABLE ovens (id INT, heat INT, mode INT)")
            insert(base, "presses", self.presses[first[0] :])
            insert(base, "ovens", self.ovens[first[1] :])
            return {id_ for (id_,) in base.execute(sql).fetchall()}


def rows(fleet: FedFleet, alert: str) -> set[int]:
    """The rows of an alert in Kafka."""
    return {alarm["row"]["id"] for alarm in fleet.alarms().get(alert, ())}

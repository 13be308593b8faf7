"""The joiner loses its state: edges begin their representatives anew, and later rows are complete.

What edges published before can be gone from Kafka, and then it stands for nothing any more.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.e2e.fed_fleet import FedFleet, until
from tests.e2e.plant import CONFIG, JOINED, STREAMS, Plant, rows

from tamis.local.fleet import EdgeSpec
from tamis.local.scrape import Scrape
from tamis.messaging.records import Ack
from tamis.messaging.topics import ACKS

QUERY = f"{JOINED} > 1200"


@pytest.mark.recovery
@pytest.mark.timeout(600)
def test_edges_begin_anew_when_the_joiner_has_lost_its_state(tmp_path: Path) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(CONFIG)
    fed = FedFleet(tmp_path / "fleet", edges=(EdgeSpec("plant", config),))
    try:
        fed.start(STREAMS + f"CREATE ALERT hot AS {QUERY};")
        plant = Plant(fed.fleet.bootstrap)
        plant.send(2_000, presses_alone=True)
        until(lambda: _kept(fed) == 6, 180)
        before, joiner = _obeyed(fed), fed.fleet.processes["joiner"]
        assert joiner.stop() == 0
        shutil.rmtree(tmp_path / "fleet/joiner")
        (tmp_path / "fleet/joiner").mkdir()
        _delete_tuples(fed)
        joiner.start()
        joiner.wait_ready(200)
        until(lambda: _obeyed(fed) > before, 120)
        first = plant.sent
        plant.send(400, most=700)
        wanted = plant.rows(QUERY, first)
        assert wanted
        until(lambda: rows(fed, "hot") == wanted, 120)
    finally:
        fed.fleet.stop()


def _kept(fed: FedFleet) -> float:
    """The entries of the query."""
    found = Scrape.of(fed.fleet.telemetry["joiner"]).by("tamis_query_state_tuples", "query")
    return found.get("hot", 0.0)


def _obeyed(fed: FedFleet) -> int:
    """The newest plan that all shards obey."""
    acks = {ack.shard: ack.plan for ack in map(Ack.from_bytes, fed.records(ACKS)) if ack.state == "active"}
    return min(acks.values())


def _delete_tuples(fed: FedFleet) -> None:
    """Delete all records of the topics of both streams, as their retention does."""
    admin = AdminClient({"bootstrap.servers": fed.fleet.bootstrap})
    names = [f"tamis.stream.{stream}.1" for stream in ("presses", "ovens")]
    known = admin.list_topics(timeout=30).topics
    ends = [TopicPartition(name, number, -1) for name in names for number in known[name].partitions]
    for deleted in admin.delete_records(ends).values():
        deleted.result(30)

"""Two edges of one group that leave and join every five seconds, while readings arrive."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import pytest
from tests.e2e.fed_fleet import FedFleet
from tests.e2e.feeder import feeding
from tests.faults.judging import ALERTS, check_alarms, check_windows, settle
from tests.faults.kafka_feeder import PARTITIONS, SOURCES, KafkaFeeder, create_raw_topics
from tests.integration.edges import Reader

from tamis.local.fleet import EdgeSpec
from tamis.messaging.records import Ack
from tamis.messaging.topics import ACKS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

ROUNDS = 5  # of four rebalances
EVERY = 5.0  # seconds


def test_rebalances_every_five_seconds_neither_lose_nor_double_an_alarm(tmp_path: Path) -> None:
    edges = []
    for name in ("one", "two"):
        config = tmp_path / f"{name}.yaml"
        config.write_text(f"name: {name}\n{SOURCES}")
        edges.append(EdgeSpec(name, config))
    fed = FedFleet(tmp_path / "fleet", edges=edges)
    try:
        bootstrap = fed.fleet.broker.start()
        create_raw_topics(bootstrap)
        fed.start(ALERTS)
        feeder = KafkaFeeder(bootstrap, seed=5)
        processes = [fed.fleet.processes[edge.name] for edge in edges]
        try:
            with feeding(feeder, pause=0.01):
                for _ in range(ROUNDS):
                    for process in processes:
                        time.sleep(EVERY)
                        assert process.stop() == 0
                        time.sleep(EVERY)
                        process.start()
            for process in processes:
                process.wait_ready(60)
            passed = settle(fed, feeder)
            feeder.flush()
        finally:
            feeder.end()
        check_windows(fed, feeder, passed)
        check_alarms(fed, feeder, tmp_path)
        # Each stop of an edge that held shards moves them to the other.
        owners = edges_of_shards(bootstrap)
        assert len(owners) == 2 * PARTITIONS
        assert all(len(names) > ROUNDS for names in owners.values()), owners
    finally:
        fed.fleet.stop()


def edges_of_shards(bootstrap: str) -> dict[str, list[str]]:
    """The edges that held each shard, one after the other."""
    reader = Reader(bootstrap, [ACKS])
    owners: dict[str, list[str]] = defaultdict(list)
    for ack in (Ack.from_bytes(message.value) for message in reader.read(5)):
        if ack.state == "active" and owners[ack.shard][-1:] != [ack.edge]:
            owners[ack.shard].append(ack.edge)
    reader.close()
    return dict(owners)

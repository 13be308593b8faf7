"""Stops of an edge, and of its sources, while it starts and while a rebalance goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.integration.edges import Bench, wait_for

from tamis.settings import KafkaSettings
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.kafka.topic import KafkaTopic

SOURCE = KafkaSource(kind="kafka", name="k", topic="raw", stream="air", group="readers")


def is_stable(admin: AdminClient, group: str) -> bool:
    """True if the group's members have their partitions."""
    try:
        found = admin.describe_consumer_groups([group])[group].result()
    except KafkaException:
        return False  # its coordinator is loading
    return bool(found.state.name == "STABLE")


def test_partitions_that_are_assigned_while_a_source_closes_are_not_waited_for(bench: Bench) -> None:
    bench.create(["raw"])
    topic = KafkaTopic(SOURCE, KafkaSettings(bootstrap=bench.bootstrap), lambda _: None, lambda _: None)
    topic.start()
    # The client joins in its own thread. Only the next poll, here that of `close`, hands out the partitions.
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    wait_for("an assignment", lambda: is_stable(admin, "readers"))
    began = time.monotonic()
    topic.close()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("library", ["orjson", "librdkafka"])
def test_an_edge_that_is_stopped_while_it_imports_ends_at_once(bench: Bench, library: str) -> None:
    process = bench.edge("e").process
    process.start()
    maps = Path(f"/proc/{process.pid}/maps")
    wait_for(library, lambda: library in maps.read_text())
    began = time.monotonic()
    assert process.stop() == 0
    assert time.monotonic() - began < 5

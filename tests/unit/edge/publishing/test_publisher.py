"""The publisher over the client library's own broker in memory: what is delivered is reported."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.records import Record
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.storage.spool import Spool


class InMemory(KafkaSettings):
    """A cluster of one broker inside the client."""

    def client_config(self, **more: Any) -> dict[str, Any]:
        return {**super().client_config(**more), "test.mock.num.brokers": 1}


class Shard:
    """Sends records and remembers which are safe."""

    shard = "air:edge/source"

    def __init__(self, count: int, first: int = 0) -> None:
        self.out = deque(
            Record(first + i, "tamis.stream.air.1", i % 3, b"k", b"%d" % i, 1_700_000_000_000)
            for i in range(count)
        )
        self.known: list[int] = []

    def safe(self, *tokens: int) -> None:
        self.known.extend(tokens)

    def carries_tuple(self, token: int) -> bool:
        return True

    def place(self, token: int) -> int:
        return token

    def retract(self, token: int) -> None:
        raise AssertionError("all of it is of readings")


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[tuple[Publisher, Spool]]:
    spool = Spool(tmp_path / "spool.db", 10**9)
    publisher = Publisher(
        InMemory(), "e", spool, DeadLetterFiles(tmp_path / "letters", 10**9), Metrics("edge")
    )
    yield publisher, spool
    publisher.close()
    spool.close()


def hear(publisher: Publisher, done: object, seconds: float = 15.0) -> None:
    """Poll until `done()` holds."""
    assert callable(done)
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        publisher.poll()
        time.sleep(0.01)
    assert done()


def test_every_delivered_record_is_reported(parts: tuple[Publisher, Spool]) -> None:
    publisher, _ = parts
    shard = Shard(1_000)
    publisher.send(shard, movable=True)
    hear(publisher, lambda: len(shard.known) == 1_000)
    assert sorted(shard.known) == list(range(1_000))
    assert publisher.in_flight == 0
    assert publisher.report("tamis.acks", b"e", b"{}")
    hear(publisher, lambda: publisher.in_flight == 0)


def test_what_was_spooled_is_forgotten_once_it_is_delivered(parts: tuple[Publisher, Spool]) -> None:
    publisher, spool = parts
    shard = Shard(500)
    spool.append(shard.shard, list(shard.out), range(len(shard.out)))
    hear(publisher, lambda: spool.records == 0)
    assert publisher.fault is None


def test_the_partition_counts_of_all_topics_come_from_one_request(parts: tuple[Publisher, Spool]) -> None:
    publisher, _ = parts
    shard = Shard(3)
    publisher.send(shard, movable=True)  # this broker makes a topic with the first record
    hear(publisher, lambda: len(shard.known) == 3)
    requests = []
    ask = publisher._producer.list_topics

    class Counting:
        def list_topics(self, **options: Any) -> Any:
            requests.append(options)
            return ask(**options)

    publisher._producer, producer = cast(Producer, Counting()), publisher._producer
    try:
        assert publisher.partition_counts()["tamis.stream.air.1"] > 0
    finally:
        publisher._producer = producer
    assert len(requests) == 1 and "topic" not in requests[0]

"""An edge reads the parts of plans that concern its streams, and whole plans if one came without parts."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.oracle.fleet.plan_parts import in_order, part_of
from tests.unit.plan.test_slices import plan

from tamis.errors import UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import PLANS, part_topic
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis_edge import plan_reader
from tamis_edge.plan_reader import PlanFile, PlanReader
from tamis_registry.kafka.store import Store
from tamis_registry.plans import Origin

PARTITIONS = 2
MADE = replace(
    plan(), partitions=PARTITIONS, streams=tuple(replace(one, topics=()) for one in plan().streams)
)
PARTS = [part_topic("a"), part_topic("b")]


class World:
    """A registry's writer, and an edge with sources of some streams. `read`: the topics that it has read."""

    def __init__(self, broker: EmbeddedKafka, path: Path) -> None:
        self.settings = KafkaSettings(bootstrap=broker.bootstrap)
        self.store = Store(self.settings, "registry")
        self.store.topics.ensure_base(PARTITIONS)
        self.store.take_over(False)
        self.path = path
        self.read: list[Sequence[str]] = []
        self.readers: list[PlanReader] = []

    def write(self, version: int) -> None:
        self.store.write_plan(encode_plan(of(version)), Origin(0), PARTITIONS, ())

    def write_without_parts(self, version: int) -> None:
        """As an older registry does."""
        producer = Producer({"bootstrap.servers": self.settings.bootstrap})
        for partition in range(PARTITIONS):
            producer.produce(PLANS, encode_plan(of(version)), b"plan", partition)
        assert producer.flush(10) == 0

    def edge(self, *streams: str) -> PlanReader:
        reader = PlanReader(
            self.settings, PlanFile(self.path, frozenset(streams)), dict, lambda: None, "an edge"
        )
        self.readers.append(reader)
        reader.start()
        return reader


def of(version: int) -> Plan:
    """A plan of which every stream says its version."""
    return replace(MADE, version=version, streams=tuple(replace(one, delay=version) for one in MADE.streams))


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has(edge: PlanReader, version: int, *streams: str) -> None:
    until(lambda: edge.fresh and edge.plan is not None and edge.plan.version == version)
    assert edge.plan is not None
    assert in_order(edge.plan) == in_order(part_of(of(version), set(streams)))


@pytest.fixture
def world(empty: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(empty, tmp_path)

    class Noted(TopicReader):
        def __init__(self, config: Any, topics: Sequence[str], **more: Any) -> None:
            super().__init__(config, topics, **more)
            made.read.append(topics)

    monkeypatch.setattr(plan_reader, "TopicReader", Noted)
    monkeypatch.setattr(plan_reader, "LOOK", 1.0)
    yield made
    for edge in made.readers:
        edge.stop()
    made.store.close()


def test_an_edge_reads_the_parts_of_its_streams_alone(world: World) -> None:
    for version in range(1, 20):
        world.write(version)
    edge = world.edge("a", "b")
    has(edge, 19, "a", "b")
    for version in (20, 21):
        world.write(version)
        has(edge, version, "a", "b")
    time.sleep(2 * plan_reader.LOOK + plan_reader.LATER)
    assert world.read == [PARTS]


def test_an_edge_reads_parts_again_after_kafka_was_away(world: World, empty: EmbeddedKafka) -> None:
    world.write(1)
    edge = world.edge("a", "b")
    has(edge, 1, "a", "b")
    assert empty._process is not None
    empty._process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(15)  # longer than an edge waits for an answer
    finally:
        empty._process.send_signal(signal.SIGCONT)
    until(lambda: _written(world, 2))
    has(edge, 2, "a", "b")
    assert len(world.read) > 1 and all(topics == PARTS for topics in world.read)


def _written(world: World, version: int) -> bool:
    """True once the registry has written a plan; it opens its writer anew after a failure."""
    try:
        world.write(version)
    except UnavailableError:
        world.store.close()
        world.store = Store(world.settings, "registry")
        world.store.take_over(False)
        return False
    return True


def test_a_plan_without_parts_is_read_whole_until_there_are_parts_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_reader, "WHOLE", 5.0)
    world.write(1)
    edge = world.edge("a", "b")
    has(edge, 1, "a", "b")
    world.write_without_parts(2)
    has(edge, 2, "a", "b")
    assert world.read[:2] == [PARTS, [PLANS]]
    world.write(3)
    has(edge, 3, "a", "b")
    until(lambda: world.read[-1] == PARTS)
    seen = len(world.read)
    world.write(4)
    has(edge, 4, "a", "b")
    time.sleep(2 * plan_reader.LOOK + plan_reader.LATER)
    assert len(world.read) == seen


def test_an_edge_that_starts_under_an_older_registry_has_its_plan(world: World) -> None:
    world.write_without_parts(1)
    has(world.edge("a"), 1, "a")
    world.write(2)
    world.write_without_parts(3)
    has(world.edge("b"), 3, "b")


def test_a_dropped_stream_and_deleted_parts_keep_no_edge_from_its_plan(world: World) -> None:
    world.write(1)
    gone = replace(of(2), streams=tuple(one for one in of(2).streams if one.name != "c"))
    world.store.write_plan(encode_plan(gone), Origin(0), PARTITIONS, ())
    edge = world.edge("a", "c")
    until(lambda: edge.plan is not None and edge.plan.version == 2)
    other = world.edge("b")
    has(other, 2, "b")
    admin = AdminClient({"bootstrap.servers": world.settings.bootstrap})
    admin.delete_topics([part_topic("b")])[part_topic("b")].result(30)
    world.write_without_parts(3)
    has(other, 3, "b")

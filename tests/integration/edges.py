"""Broker, plans and edge processes for tests of the edge, without registry and joiner."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import httpx
import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.local.broker import EmbeddedKafka
from tamis.local.scrape import Scrape
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.records import Ack
from tamis.messaging.topics import ACKS, DEAD_LETTERS, PLANS, SKETCHES
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan

PARTITIONS = 2


def wait_for(what: str, condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


def wipe(bootstrap: str) -> None:
    """Delete the topics of earlier tests from a broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def left() -> list[str]:
        return [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]

    for done in admin.delete_topics(left()).values() if left() else ():
        done.result()
    wait_for("topics are gone", lambda: not left())


def everything(*shards: str, version: int = 1, delay: int = 0, **fields: Any) -> Plan:
    """A plan that retains every tuple, so that each can be looked for."""
    return plan(air([topic([entry(0)])], delay, **fields), shards, version, PARTITIONS)


@dataclass
class Message:
    """One record of a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes
    headers: dict[str, str]
    timestamp: int

    @cached_property
    def _parts(self) -> Any:
        # Tests look at all that has come again and again.
        columns = orjson.loads(self.value)
        return columns.pop("_"), columns

    @property
    def envelope(self) -> dict[str, Any]:
        """The envelope of the record."""
        found: dict[str, Any] = self._parts[0]
        return found

    @property
    def kind(self) -> str:
        """tuple, progress or final"""
        return str(self.envelope.get("kind", "tuple"))

    @property
    def tuple(self) -> dict[str, Any]:
        """The columns."""
        found: dict[str, Any] = self._parts[1]
        return found


class Reader:
    """Follows some topics from their beginning."""

    def __init__(self, bootstrap: str, topics: Sequence[str], partitions: int = PARTITIONS) -> None:
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        self._consumer = Consumer(config)
        counts = {ACKS: 1, DEAD_LETTERS: 1}
        self._consumer.assign(
            [TopicPartition(name, p, 0) for name in topics for p in range(counts.get(name, partitions))]
        )
        self.messages: list[Message] = []

    def read(self, seconds: float = 0.05) -> list[Message]:
        """All messages so far."""
        for m in self._consumer.consume(10_000, seconds):
            if m.error() is None:
                pairs = cast(list[tuple[str, bytes]], m.headers() or [])
                headers = {name: value.decode() for name, value in pairs}
                where = (m.topic() or "", m.partition() or 0)
                self.messages.append(Message(*where, m.key(), m.value() or b"", headers, m.timestamp()[1]))
        return self.messages

    def of(self, kind: str) -> list[Message]:
        """The stream's messages of one kind so far."""
        return [m for m in self.read() if m.topic not in (ACKS, DEAD_LETTERS) and m.kind == kind]

    def acks(self) -> list[Ack]:
        """All acknowledgements of shards so far."""
        return [ack for ack in self._reports() if not ack.is_of_edge]

    def lives(self, edge: str) -> list[Ack]:
        """The signs of life that an edge has sent while it had no shards."""
        return [ack for ack in self._reports() if ack.is_of_edge and ack.edge == edge]

    def _reports(self) -> list[Ack]:
        return [Ack.from_bytes(m.value) for m in self.read() if m.topic == ACKS]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


@dataclass
class Bench:
    """A broker with the fleet's topics, and the edges of one test."""

    broker: EmbeddedKafka
    directory: Path
    edges: list[ServiceProcess] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        """The address of Kafka."""
        return self.broker.bootstrap

    def create(self, topics: Iterable[str], partitions: int = PARTITIONS) -> None:
        """Create topics that don't exist yet."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        there = admin.list_topics(timeout=10).topics
        new = [NewTopic(name, partitions, 1) for name in topics if name not in there]
        for done in admin.create_topics(new).values() if new else ():
            done.result()
        wanted = {topic.topic for topic in new}
        wait_for("new topics", lambda: wanted <= admin.list_topics(timeout=10).topics.keys())

    def publish(self, plan: Plan, create: bool = True) -> None:
        """Make the plan's topics and write it into every partition of the plan topic."""
        self.create([ACKS, DEAD_LETTERS, SKETCHES], 1)
        self.create([PLANS])
        if create:
            self.create([topic.name for stream in plan.streams for topic in stream.topics], plan.partitions)
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition in range(PARTITIONS):
            producer.produce(PLANS, encode_plan(plan), b'"plan"', partition)
        assert producer.flush(10) == 0

    def produce(self, topic: str, values: Iterable[tuple[int, bytes]]) -> None:
        """Write values to partitions of a topic."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition, value in values:
            producer.produce(topic, value, partition=partition)
            producer.poll(0)
        assert producer.flush(10) == 0

    def edge(self, name: str, config: str | None = None, **environment: str) -> RunningEdge:
        """An edge that isn't started yet, with a data directory by its name. `{port}` in the YAML is its HTTP
        port.
        """
        http, telemetry = free_ports(2)
        arguments = ["edge", "--name", name, "--data", str(self.directory / name), "--http-port", str(http)]
        if config is not None:
            path = self.directory / f"{name}.yaml"
            path.write_text(config)
            arguments += ["--config", str(path)]
        environment |= {
            "TAMIS_KAFKA_BOOTSTRAP": self.bootstrap,
            "TAMIS_TELEMETRY_PORT": str(telemetry),
            "TAMIS_LOG_LEVEL": "debug",
            "TAMIS_LOG_FORMAT": "json",
        }
        base = f"http://127.0.0.1:{telemetry}"
        process = ServiceProcess(
            name, arguments, environment, self.directory / f"{name}.log", f"{base}/readyz"
        )
        self.edges.append(process)
        return RunningEdge(process, base, f"http://127.0.0.1:{http}")

    def reader(self, *topics: str) -> Reader:
        """A reader of these topics; they must exist."""
        reader = Reader(self.bootstrap, topics)
        self.readers.append(reader)
        return reader

    def close(self) -> None:
        """Kill the edges that still run, and check that their logs are JSON."""
        for edge in self.edges:
            if edge.exit_code() is None:
                edge.kill()
        for reader in self.readers:
            reader.close()
        for edge in self.edges:
            for line in edge.log.read_bytes().splitlines() if edge.started else ():
                orjson.loads(line)


@dataclass
class RunningEdge:
    """One edge process."""

    process: ServiceProcess
    telemetry: str
    http: str

    def start(self) -> RunningEdge:
        """Start it and wait until it is ready."""
        self.process.start()
        self.process.wait_ready(90)  # a first start compiles
        return self

    def kill(self) -> None:
        """SIGKILL."""
        os.kill(self.process.pid, 9)
        wait_for("the edge is gone", lambda: self.process.exit_code() is not None)

    def stop(self) -> None:
        """Send SIGTERM; the edge must end in time, with exit code 0."""
        began = time.monotonic()
        assert self.process.stop() == 0
        assert time.monotonic() - began < 10

    def post(self, stream: str, readings: Any, **options: Any) -> httpx.Response:
        """Send readings over HTTP."""
        content = readings if isinstance(readings, bytes) else orjson.dumps(readings)
        return httpx.post(f"{self.http}/v1/streams/{stream}", content=content, timeout=10, **options)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples now."""
        return Scrape.of(self.telemetry).total(name, **labels)

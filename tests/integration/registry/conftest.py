"""Registries on a real broker, and a hand that plays edges and joiner."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tamis.declarations.file_access import NO_ACCESS
from tamis.messaging.records import Ack, Frontier, ShardState, StreamState
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import ACKS, FRONTIERS
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis.telemetry.server import HttpServer
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.http.api import application
from tamis_registry.proving.messages import Settings
from tamis_registry.proving.pool import Provers
from tamis_registry.proving.prover import Prover
from tamis_registry.registry_loop import RegistryLoop

SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100), WATERMARK FOR ts AS ts)
  WITH (max_stall = '{stall}');
CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100), WATERMARK FOR ts
AS ts)
  WITH (max_stall = '{stall}');
CREATE ALERT hot AS SELECT a.k, a.v FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > 50;
"""


# One process for all registries: it is told what each of them has, and to start one takes seconds.
PROVER = Prover(Settings(NO_ACCESS, 20, 2 << 30))


class Running:
    """A registry in this process: its loop and its HTTP server in threads."""

    def __init__(self, bootstrap: str, partitions: int | None = 2, prover: Prover = PROVER) -> None:
        self.bootstrap = bootstrap
        metrics, health = Metrics("registry"), Health()
        self.prover, self.provers = prover, Provers([prover])
        self.worker = RegistryLoop(KafkaSettings(bootstrap=bootstrap), partitions, PLANNER, metrics, health)
        self.app = app = application(self.worker, self.provers, metrics, health)
        self.server = HttpServer(app, "127.0.0.1", 0, ending=app.state.broadcast.close)
        self.error: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.server.start()
        self._thread.start()

    def _run(self) -> None:
        try:
            self.worker.run(self._stopping)
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.server.stop()

    def ended(self, seconds: float = 10) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def call(self, method: str, path: str, content: str | None = None, **headers: str) -> httpx.Response:
        body = content.encode() if content is not None else None
        return httpx.request(method, self.server.url + path, content=body, headers=headers, timeout=40)

    def sql(self, text: str) -> Any:
        answer = self.call("POST", "/v1/statements", text)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.call("GET", f"/v1/{path}")
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def lease(self, stream: str, **parameters: str | int) -> Any:
        url = f"{self.server.url}/v1/streams/{stream}/topic"
        answer = httpx.post(url, params=parameters, timeout=40)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def topics(self) -> set[str]:
        """The topics that there are on the broker."""
        return set(AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=10).topics)

    def plan(self) -> Any:
        """The newest plan as it was written."""
        return self.get(f"plans/{self.get('plans')[0]['version']}")

    def until(self, condition: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait for something to be so."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"not so after {seconds} s; {self.error}"
            time.sleep(0.05)
        return value

    def ready(self) -> Running:
        self.until(lambda: self.error or self.call("GET", "/readyz").status_code == httpx.codes.OK, 40)
        assert self.error is None, self.error
        return self


class Hand:
    """Says what edges and joiner would say, and reads what they would read."""

    def __init__(self, bootstrap: str) -> None:
        self._config = {"bootstrap.servers": bootstrap}
        self._producer = Producer(self._config)

    def ack(
        self,
        shard: str,
        plan: int,
        activation: int = 0,
        state: ShardState = "waiting",
        failing: dict[str, str] | None = None,
    ) -> None:
        edge, stream = shard.split("/")
        now = time.time_ns() // 1000
        ack = Ack(shard, stream, edge, plan, activation, state, now, failing=failing)
        self._send(ACKS, shard.encode(), ack.to_bytes())

    def frontier(
        self, partition: int, plan: int, topics: dict[str, int], waiting: dict[str, int] | None = None
    ) -> None:
        states = {name: StreamState(value, 0, 0, False, obeyed=plan) for name, value in topics.items()}
        now = time.time_ns() // 1000
        frontier = Frontier(partition, plan, states, {}, {}, 0, 0, now, waiting=waiting or {})
        self._send(FRONTIERS, str(partition).encode(), frontier.to_bytes())

    def garbage(self, topic: str, value: bytes | None, key: bytes = b"?", partition: int = 0) -> None:
        self._send(topic, key, value, partition)

    def records(self, topic: str) -> list[Record]:
        """Every record as it is."""
        with TopicReader(self._config, (topic,)) as reader:
            return list(reader.snapshot())

    def read(self, topic: str) -> list[tuple[int, Any]]:
        """Partition and document of every record."""
        with TopicReader(self._config, (topic,)) as reader:
            return [
                (record.partition, orjson.loads(record.value))
                for record in reader.snapshot()
                if record.value is not None
            ]

    def _send(self, topic: str, key: bytes, value: bytes | None, partition: int = 0) -> None:
        self._producer.produce(topic, value, key, partition)
        self._producer.flush(10)


@pytest.fixture
def fresh(kafka: str) -> str:
    """A broker without any of Tamis's topics."""
    admin = AdminClient({"bootstrap.servers": kafka})
    names = [name for name in admin.list_topics(timeout=10).topics if name.startswith("tamis.")]
    for future in (admin.delete_topics(names) if names else {}).values():
        future.result()
    return kafka


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts registries, and stops them all at the end."""
    made: list[Running] = []

    def start_one(bootstrap: str, partitions: int | None = 2) -> Running:
        made.append(Running(bootstrap, partitions))
        return made[-1]

    yield start_one
    for one in made:
        one.stop()


@pytest.fixture
def hand() -> type[Hand]:
    return Hand


@pytest.fixture
def sql() -> Callable[..., str]:
    """The statements, with a max_stall."""

    def with_stall(stall: str = "1 hour") -> str:
        return SQL.format(stall=stall)

    return with_stall

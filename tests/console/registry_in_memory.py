"""A registry without Kafka: its real loop, cores, provers and HTTP server over topics in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import httpx
import pytest

from tamis.declarations.file_access import NO_ACCESS
from tamis.messaging.heartbeats import JOINER, Heartbeat, SinkState
from tamis.messaging.records import Ack, Frontier, StreamState
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import ACKS, FRONTIERS, HEARTBEATS
from tamis.plan.document import PlanDocument
from tamis.settings import KafkaSettings
from tamis.settings.token_file import TokenFile
from tamis.telemetry import Health, Metrics
from tamis.telemetry.server import HttpServer
from tamis_registry.core.plan.change import Final
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.silences import Kept
from tamis_registry.http.api import application
from tamis_registry.kafka.store import Recovered, Unreadable
from tamis_registry.plans import Origin
from tamis_registry.proving.messages import Settings
from tamis_registry.proving.pool import Provers
from tamis_registry.proving.prover import Prover
from tamis_registry.registry_loop import RegistryLoop

PARTITIONS = 2


class MemoryTopics:
    """Names of topics, in place of a broker's."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.cluster_id = None

    def ensure_base(self, partitions: int) -> None:
        """The base topics are always there."""

    def ensure_streams(self, names: Iterable[str], partitions: int) -> None:
        self.names.update(names)

    def check_streams(self, names: Iterable[str], partitions: int) -> None:
        """No topic has another partition count: all are made here."""


class MemoryStore:
    """The topics of a registry as dictionaries, and a queue of reports in place of the fleet's."""

    def __init__(self) -> None:
        self.topics = MemoryTopics()
        self.found = Recovered()
        self.reports: SimpleQueue[Record] = SimpleQueue()
        self.trouble, self.behind = "", False

    def take_over(self, mine: bool) -> Recovered:
        return self.found

    def read_plans(self, into: Recovered) -> None:
        """`found` has them already."""

    def remove(self, unreadable: Iterable[Unreadable]) -> None:
        """Every record here is a plan."""

    def write_statements(self, changed: Mapping[bytes, bytes | None]) -> None:
        for key, value in changed.items():
            if value is None:
                self.found.statements.pop(key, None)
            else:
                self.found.statements[key] = value

    def write_silences(self, changed: Mapping[bytes, Kept | None]) -> None:
        """The core keeps them."""

    def write_plan(self, plan: bytes, origin: Origin, partitions: int, finals: Iterable[Final]) -> None:
        """The loop keeps the plan in `found.plans`."""

    def check_plan(self, plan: PlanDocument) -> None:
        """No broker limits its size."""

    def poll(self) -> list[Record]:
        found = []
        while True:
            try:
                found.append(self.reports.get_nowait())
            except Empty:
                return found

    def reachable(self) -> bool:
        return True

    def close(self) -> None:
        """There is no connection."""


class RegistryInMemory:
    """A registry in this process, and a hand that plays edges and joiner."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, tokens: TokenFile | None = None, token: str | None = None
    ) -> None:
        """`token`: that of the requests of this class, if the registry is protected."""
        self.store = MemoryStore()
        monkeypatch.setattr("tamis_registry.registry_loop.Store", lambda kafka, owner: self.store)
        metrics, health = Metrics("registry"), Health()
        self._provers = Provers([PROVER])
        self._loop = RegistryLoop(KafkaSettings(), PARTITIONS, PLANNER, metrics, health)
        app = application(self._loop, self._provers, metrics, health, tokens=tokens)
        self._server = HttpServer(app, "127.0.0.1", 0)
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._stopping = threading.Event()
        self._playing: threading.Thread | None = None
        # Cleared, the edge and the joiner stay at the plan that they use.
        self.keeps_up = threading.Event()
        self.keeps_up.set()
        self._obeyed = 0
        self._began = time.monotonic()
        # Sources of the edge that fail, with the reasons.
        self.failing: dict[str, str] = {}
        # Readings of each shard that became dead letters.
        self.dead = 0
        # Set, the joiner sends neither frontiers nor heartbeats.
        self.joiner_hangs = threading.Event()
        # Sinks of a worker of the alerts service.
        self.sinks: dict[str, SinkState] = {"log": SinkState()}
        self._thread = threading.Thread(target=self._loop.run, args=(self._stopping,))
        self._server.start()
        self._thread.start()
        deadline = time.monotonic() + 30
        while httpx.get(f"{self.url}/readyz").status_code != httpx.codes.OK:
            assert time.monotonic() < deadline, "the registry isn't ready"
            time.sleep(0.05)

    @property
    def url(self) -> str:
        return self._server.url

    def stop(self) -> None:
        self._stopping.set()
        if self._playing is not None:
            self._playing.join()
        self._thread.join()
        self._server.stop()

    def sql(self, text: str) -> Any:
        url = f"{self.url}/v1/statements"
        answer = httpx.post(url, content=text.encode(), headers=self._headers, timeout=60)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = httpx.get(f"{self.url}/v1/{path}", headers=self._headers, timeout=20)
        return answer.raise_for_status().json()

    def version(self) -> int:
        """The newest plan's."""
        return int(max(plan["version"] for plan in self.get("plans")))

    def ack(self, stream: str, edge: str, *, plan: int = 0, activation: int = 0) -> None:
        """A shard reports: it waits, or obeys a plan."""
        shard, state = f"{stream}:{edge}/{stream}", "active" if plan else "waiting"
        now, failing = time.time_ns() // 1000, dict(self.failing)
        # A hundred readings a second, of which one in four is retained.
        n = int(25 * (time.monotonic() - self._began))
        counts = {"published": n, "omitted": 2 * n, "filtered": n, "late": 0, "dead": self.dead}
        told: dict[str, Any] = {"tuples": counts, "watermark": activation} if plan else {}
        ack = Ack(shard, stream, edge, plan, activation, state, now, failing=failing, **told)  # type: ignore[arg-type]
        self._report(ACKS, shard.encode(), ack.to_bytes())

    def live(self, edge: str, failing: dict[str, str]) -> None:
        """An edge that has no shards reports its failing sources."""
        told = Ack.of_edge(edge, time.time_ns() // 1000, failing)
        self._report(ACKS, edge.encode(), told.to_bytes())

    def frontiers(self, plan: int, live: Mapping[str, int], since: int = 0) -> None:
        """The joiner reports that it obeys a plan, and its live tuples by `alert@version`. Partition 0 has
        come as far as `since`, and each further one a second farther.
        """
        for partition in range(PARTITIONS):
            reached = since + partition * 1_000_000
            states = {
                name: StreamState(reached, 10, 2000, False, obeyed=plan) for name in self.store.topics.names
            }
            counts = {name: n // PARTITIONS for name, n in live.items()}
            now = time.time_ns() // 1000
            frontier = Frontier(partition, plan, states, counts, {}, 0, 0, now)
            self._report(FRONTIERS, str(partition).encode(), frontier.to_bytes())

    def settle(self, streams: Iterable[str], live: int, activation: int, edge: str = "kitchen") -> None:
        """Play an edge with a shard of each stream and a joiner, until the registry stops. Returns when every
        alert runs and every shard is active.
        """
        self._playing = threading.Thread(target=self._play, args=(tuple(streams), live, activation, edge))
        self._playing.start()
        deadline = time.monotonic() + 30
        while not self._settled():
            assert time.monotonic() < deadline, (self.get("alerts"), self.get("edges"))
            time.sleep(0.1)

    def _settled(self) -> bool:
        edges = self.get("edges")
        states = [shard["state"] for edge in edges for shard in edge["shards"]]
        running = all(alert["state"] == "running" for alert in self.get("alerts"))
        return running and bool(states) and set(states) == {"active"}

    def _play(self, streams: Sequence[str], live: int, activation: int, edge: str) -> None:
        while not self._stopping.wait(0.3):
            version = self.version() if self.keeps_up.is_set() else self._obeyed
            self._obeyed = version
            for stream in streams:
                known = {shard["shard"] for shard in self.get(f"streams/{stream}")["shards"]}
                listed = f"{stream}:{edge}/{stream}" in known
                self.ack(stream, edge, plan=version if listed else 0, activation=activation)
            alerts = {
                f"{alert['name']}@{alert['plan']}": min(live, alert["bound"] or 0)
                for alert in self.get("alerts")
            }
            now = time.time_ns() // 1000
            self._report(HEARTBEATS, b"alerts/a", Heartbeat(time=now, sinks=self.sinks).to_bytes())
            if not self.joiner_hangs.is_set():
                self._report(HEARTBEATS, JOINER.encode(), Heartbeat(time=now).to_bytes())
                self.frontiers(version, alerts, activation)

    def _report(self, topic: str, key: bytes, value: bytes) -> None:
        self.store.reports.put(Record(topic, 0, 0, key, value))


# One process for all registries: it takes seconds to start.
PROVER = Prover(Settings(NO_ACCESS, 20, 2 << 30))

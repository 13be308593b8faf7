"""The registry as a process with thousands of edges, which report to it over Kafka."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
from confluent_kafka import Producer

from benchmarks.harness import Cell, Result, Say
from benchmarks.registry import ALERTS, HEARTBEAT, PARTITIONS, STREAM
from benchmarks.spark_queries import resident
from tamis.errors import UnavailableError
from tamis.local.fleet import Fleet, FleetSpec
from tamis.local.scrape import Scrape
from tamis.messaging.records import Ack, ShardState
from tamis.messaging.topics import ACKS
from tamis.settings import KafkaSettings

NAME = "registry_process"
STEPS = (100, 1_000, 10_000)
WATCHED = 30.0  # seconds in which nothing changes
PATIENCE = 120.0
COLUMNS = (
    "edges",
    "until all are listed, s",
    "share of a core",
    "resident, MB",
    "answer to a new alert, s",
    "until all edges use it, s",
    "GET /v1/edges, ms",
    "GET /v1/edges, KB",
)


class Edges:
    """Edges of one shard each. Each reports every `HEARTBEAT` seconds, and uses the newest plan from its next
    report on.
    """

    def __init__(self, bootstrap: str, registry: str, count: int) -> None:
        self._registry, self._count = registry, count
        self._producer = Producer({**KafkaSettings(bootstrap=bootstrap).client_config(), "linger.ms": 50})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._report)
        self.fault: Exception | None = None

    def __enter__(self) -> Edges:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _report(self) -> None:
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                plan, listed = newest_plan(self._registry)
                self._send(plan, "active" if listed == self._count else "waiting")
                self._stopping.wait(max(0.0, began + HEARTBEAT - time.monotonic()))
        except Exception as error:
            self.fault = error

    def _send(self, plan: int, state: ShardState) -> None:
        """A report of each edge, spread over half of the time between reports."""
        for number in range(self._count):
            now, edge = time.time_ns() // 1000, f"edge{number}"
            ack = Ack(f"s:{edge}/x", "s", edge, plan, 0, state, now)
            self._producer.produce(ACKS, ack.to_bytes(), ack.shard)
            if number % 100 == 99:
                self._producer.poll(0)
                self._stopping.wait(HEARTBEAT / 2 * 100 / self._count)
        self._producer.flush(HEARTBEAT)


def newest_plan(registry: str) -> tuple[int, int]:
    """The version of the newest plan, and how many shards it lists."""
    plans = httpx.get(f"{registry}/v1/plans", timeout=PATIENCE).raise_for_status().json()
    newest = max(plans, key=lambda plan: int(plan["version"]))
    return newest["version"], newest["shards"]


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    rows: list[dict[str, Cell]] = []
    for count in STEPS[:1] if quick else STEPS:
        rows.append(_measured(count, 2.0 if quick else WATCHED, say))
        say(f"{rows[-1]}")
    return Result(
        NAME,
        "The registry's process with many edges",
        COLUMNS,
        rows,
        {"alerts": ALERTS, "heartbeat": HEARTBEAT, "watched": WATCHED, "quick": quick},
        (
            f"each edge has one shard of the stream that {ALERTS} alerts read, and reports every"
            f" {HEARTBEAT:g} s over Kafka, as a real one does; from its next report on it uses a new plan",
            f"share of a core: CPU time of the registry's processes in {WATCHED:.0f} s without a change",
            "resident: of all of the registry's processes; memory that they share counts once",
        ),
    )


def _measured(count: int, watched: float, say: Say) -> dict[str, Cell]:
    with tempfile.TemporaryDirectory(prefix="tamis-bench-registry-") as temporary, ExitStack() as running:
        fleet = Fleet(FleetSpec(Path(temporary), (), partitions=PARTITIONS), say)
        running.callback(fleet.stop)
        fleet.start_registry()
        fleet.apply(STREAM + "".join(_alert(number) for number in range(ALERTS)))
        url, process = fleet.registry_url, psutil.Process(fleet.processes["registry"].pid)
        edges = running.enter_context(Edges(fleet.bootstrap, url, count))
        listing = _until("all shards are listed", edges, lambda: newest_plan(url)[1] == count)
        _until("all edges use the plan", edges, lambda: _active(url) == count)
        before, began = _spent(process), time.monotonic()
        time.sleep(watched)
        share = (_spent(process) - before) / (time.monotonic() - began)
        began = time.monotonic()
        fleet.apply(_alert(ALERTS))
        answer = time.monotonic() - began
        _until("the plan has the new alert", edges, lambda: _active(url) < count)
        taking = _until("all edges use the new alert", edges, lambda: _active(url) == count)
        began = time.monotonic()
        shown = httpx.get(f"{url}/v1/edges", timeout=PATIENCE).raise_for_status()
        return {
            "edges": count,
            "until all are listed, s": listing,
            "share of a core": share,
            "resident, MB": resident(process) / 1e6,
            "answer to a new alert, s": answer,
            "until all edges use it, s": taking,
            "GET /v1/edges, ms": 1000 * (time.monotonic() - began),
            "GET /v1/edges, KB": len(shown.content) / 1024,
        }


def _alert(number: int) -> str:
    return f"CREATE ALERT q{number} AS SELECT k FROM s WHERE x > {number};"


def _active(url: str) -> int:
    return int(Scrape.of(url).total("tamis_registry_shards", state="active"))


def _spent(process: psutil.Process) -> float:
    """CPU seconds of a process and its children."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def _until(what: str, edges: Edges, holds: Callable[[], bool]) -> float:
    """The seconds until a condition holds."""
    began = time.monotonic()
    while not holds():
        if edges.fault is not None:
            raise edges.fault
        if time.monotonic() - began > PATIENCE:
            raise UnavailableError(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(0.1)
    return time.monotonic() - began

"""Core of the registry with thousands of edges: their reports, its turns, its documents and its metrics."""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson
from prometheus_client import generate_latest

from benchmarks.harness import Cell, Result, Say
from benchmarks.sharing.growth import resident
from tamis.heap import collect_seldom
from tamis.messaging.records import Ack, Frontier
from tamis.telemetry.metrics import Metrics
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.gauges import show
from tamis_registry.http.documents.edges import edge_documents

NAME = "registry"
STEPS = (100, 1_000, 10_000)
ALERTS = 100
APPLIED = 1_000  # alerts of one text, applied with and without the documents of EXPLAIN
HEARTBEAT = 2.0  # seconds between the reports of a shard
TICK = 0.5  # seconds between turns of the registry
SECOND = 1_000_000
PARTITIONS = 8
STREAM = "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);"
COLUMNS = (
    "edges",
    "report, µs",
    "turn, ms",
    "one new edge, ms",
    "turn while all take up a plan, ms",
    "share of a core",
    "plan, KB",
    "memory per edge, KB",
    "/v1/edges, KB",
    "metrics, KB",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    collect_seldom()
    rows: list[dict[str, Cell]] = []
    for edges in STEPS[:1] if quick else STEPS:
        rows.append(_measured(edges))
        say(f"{edges:,} edges")
    applied = _explained(ALERTS if quick else APPLIED)
    say(applied)
    return Result(
        NAME,
        "The registry's core with many edges",
        COLUMNS,
        rows,
        {"alerts": ALERTS, "heartbeat": HEARTBEAT, "tick": TICK, "quick": quick},
        (
            f"each edge has one shard of the stream that {ALERTS} alerts read; times are CPU time",
            "report: an acknowledgement decoded, checked and taken; without Kafka's client",
            "turn: what is due without a statement, and all metrics",
            f"share of a core: reports every {HEARTBEAT:g} s from each edge, and a turn every {TICK:g} s",
            "plan: with every shard; the alerts are the same in all rows",
            applied,
        ),
    )


def _measured(edges: int) -> dict[str, Cell]:
    before = resident()
    registry = Registry(PLANNER, State(PARTITIONS), None, 0, 0)
    registry.done(registry.begin(0), 0)
    registry.done(registry.apply(STREAM, 0)[1], 0)
    metrics, now = Metrics("registry"), SECOND
    _hear(registry, _reports(edges, 0, "waiting", now), now)
    came = registry.tick(now)
    assert came is not None
    registry.done(came, now)
    change = registry.apply(_alerts(), now)[1]
    assert change.written is not None
    registry.done(change, now)
    for partition in range(PARTITIONS):
        registry.follow(Frontier(partition, registry.plan.version, {}, {}, {}, 0, 0, now))
    _hear(registry, _reports(edges, came.plan.version if came.plan else 0, "active", now), now)
    taking = _spent(lambda: _turn(registry, metrics, now))
    reports = _reports(edges, registry.plan.version, "active", now)
    report = _spent(lambda: _hear(registry, reports, now)) / edges
    turn = _spent(lambda: _turn(registry, metrics, now))
    size = resident() - before
    documents = orjson.dumps(edge_documents(registry.view(now)))
    _hear(registry, [Ack("s:new/x", "s", "new", registry.plan.version, 0, "waiting", now).to_bytes()], now)
    listing = _spent(lambda: registry.tick(now))
    return {
        "edges": edges,
        "report, µs": 1e6 * report,
        "turn, ms": 1000 * turn,
        "one new edge, ms": 1000 * listing,
        "turn while all take up a plan, ms": 1000 * taking,
        "share of a core": report * edges / HEARTBEAT + turn / TICK,
        "plan, KB": change.written.size / 1024,
        "memory per edge, KB": size / 1024 / edges,
        "/v1/edges, KB": len(documents) / 1024,
        "metrics, KB": len(generate_latest(metrics.registry)) / 1024,
    }


def _explained(alerts: int) -> str:
    """Time of alerts that are applied and explained, as only answers need it, relative to applying alone."""
    text = _alerts(alerts)
    registry = Registry(PLANNER, State(PARTITIONS), None, 0, 0)
    registry.done(registry.apply(STREAM, 0)[1], 0)
    began = time.process_time()
    outcomes, change = registry.apply(text, 0)
    registry.done(change, 0)
    applied = time.process_time()
    documents = [outcome.explanation() for outcome in outcomes]
    explained = time.process_time()
    assert all(documents)
    times = (explained - began) / (applied - began)
    return f"{alerts:,} alerts applied, and then explained, take {times:.2f} times as long as applied alone"


def _alerts(count: int = ALERTS) -> str:
    return "".join(f"CREATE ALERT q{n} AS SELECT k FROM s WHERE x > {n};" for n in range(count))


def _reports(edges: int, plan: int, state: str, now: int) -> list[bytes]:
    template = Ack("", "s", "", plan, now, "active", now)
    fields = template.__dict__ | {"state": state}
    return [
        orjson.dumps({**fields, "shard": f"s:edge{number}/x", "edge": f"edge{number}"})
        for number in range(edges)
    ]


def _hear(registry: Registry, reports: list[bytes], now: int) -> None:
    for value in reports:
        registry.hear(Ack.from_bytes(value), now)


def _turn(registry: Registry, metrics: Metrics, now: int) -> None:
    assert registry.tick(now) is None
    show(registry.view(now), metrics)


def _spent(what: Callable[[], object]) -> float:
    """CPU seconds, the least of three: others use the machine's caches meanwhile."""
    found = []
    for _ in range(3):
        began = time.process_time()
        what()
        found.append(time.process_time() - began)
    return min(found)

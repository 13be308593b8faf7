"""Resident memory of an edge and of the joiner while 10^7 readings pass through them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psutil

from benchmarks import plots
from benchmarks.edge import EdgeRun, running_edges
from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.raw_readings import CONFIG, KEYS, RAW, RETAINED, SQL, fill
from benchmarks.spark_queries import joiner_process, resident
from tamis.errors import UnavailableError
from tamis.local.fleet import Fleet, FleetSpec
from tamis.local.scrape import Scrape

NAME = "memory"
SAMPLES = 40
# The median of the last quarter of the samples, divided by that of the second: allocators and JVMs need the
# first to settle.
MOST_GROWTH = 1.1
BATCH = 100_000
LOOK_SECONDS = 0.5
PATIENCE = 300.0


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    part = 10_000 if quick else 250_000
    rows: list[dict[str, Cell]] = []
    with tempfile.TemporaryDirectory(prefix="tamis-bench-memory-") as temporary, ExitStack() as running:
        fleet = Fleet(FleetSpec(Path(temporary), (), partitions=PARTITIONS), say)
        running.callback(fleet.stop)
        fleet.start_registry()
        fleet.apply(SQL)
        topics = Topics(fleet.bootstrap)
        running.callback(topics.close)
        topics.create(RAW)
        joiner = running.enter_context(joiner_process(fleet.bootstrap, Path(temporary), BATCH))
        edges = running_edges(fleet, EdgeRun("edge", CONFIG, RETAINED))
        [(url, edge)] = running.enter_context(edges)
        for number in range(SAMPLES):
            fill(topics, part, number * part)
            _decided(url, (number + 1) * part)
            rows.append(_sample((number + 1) * part, edge, joiner))
            say(f"{rows[-1]}")
    growth = {name: _growth([float(row[name] or 0) for row in rows]) for name in ("edge, MB", "joiner, MB")}
    return Result(
        NAME,
        "Resident memory by readings",
        tuple(rows[0]),
        rows,
        {"keys": KEYS, "quick": quick},
        (
            "two streams of 1,000 keys; the joiner runs from the beginning, with default settings",
            "joiner: all of its processes; memory that they share counts once",
        ),
        [
            Goal(
                f"{name.partition(',')[0]}: memory of the last quarter",
                figure,
                "times that of the second",
                most=MOST_GROWTH,
            )
            for name, figure in growth.items()
        ],
        publish=lambda: plots.memory(rows),
    )


def _decided(url: str, count: int) -> None:
    """Wait until the edge has decided that many readings, or holds them."""
    deadline = time.monotonic() + PATIENCE
    while True:
        scrape = Scrape.of(url)
        if scrape.total("tamis_edge_tuples_total") + scrape.total("tamis_edge_held_tuples") >= count:
            return
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"the edge did not read {count:,} readings within {PATIENCE:.0f} s", where=url
            )
        time.sleep(LOOK_SECONDS)


def _sample(count: int, edge: psutil.Process, joiner: psutil.Process) -> dict[str, Cell]:
    return {
        "readings": count,
        "edge, MB": round(edge.memory_info().rss / 1e6),
        "joiner, MB": round(resident(joiner) / 1e6),
    }


def _growth(sizes: Sequence[float]) -> float:
    quarter = len(sizes) // 4
    return median(sizes[-quarter:]) / median(sizes[quarter : 2 * quarter])

"""Queries that are added one by one up to ten thousand: time and memory of each."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.sharing.filters import box_sql, corner, filter_sql, stream, width
from tamis.compile_kernels import warm
from tamis.heap import collect_seldom
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

NAME = "sharing.growth"
# Numbers of queries of each kind. "outside readers" are leases of consumers outside the fleet. All joins have
# omission and share one topic of each stream. Each derived stream has a topic of its own.
STEPS = {
    "outside readers": (100, 1_000, 2_000, 5_000, 10_000),
    "joins": (100, 1_000, 2_000, 5_000, 10_000),
    "aggregates": (100, 1_000, 2_000, 5_000),
    "derived streams": (100, 1_000, 2_000),
}
DIMENSIONS, SHARE = 3, 0.001
WINDOW = 100  # the last queries of a step, over which the median is taken
# The alerts for which the goals are: milliseconds for one more among the most, and how many times as long as
# among the fewer it may take.
GOAL_KIND, FEWER, MOST = "joins", 1_000, 10_000
MOST_MS, MOST_GROWTH = 10.0, 1.5
DROPPED = 20
COLUMNS = (
    "kind",
    "queries",
    "topics",
    "adding one, ms",
    "dropping one, ms",
    "adding all, s",
    "plan, KB",
    "memory per query, KB",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    rows: list[dict[str, Cell]] = []
    for kind, steps in STEPS.items():
        # Each in a process of its own, whose memory is that of its queries.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            rows += pool.submit(_grow, kind, steps[:1] if quick else steps).result()
        say(f"{rows[-1]['queries']:,} {kind} after {rows[-1]['adding all, s']:.0f} s")
    return Result(
        NAME,
        "Queries that come one by one",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "share": SHARE, "window": WINDOW, "dropped": DROPPED, "quick": quick},
        (
            f"each query has a random box over {DIMENSIONS} attributes as its filter, which holds for"
            f" {SHARE:.1%} of the tuples; a join has a box for each of its two streams",
            f"adding one: CPU time from the SQL to the plan, median of the last {WINDOW} queries; without"
            " writing the plan as JSON and without Kafka",
            f"dropping one: CPU time, median of {DROPPED} queries that are spread evenly over all",
            "memory per query: growth of the process, caches included, divided by the number of queries",
        ),
        () if quick else _goals(rows),
    )


def _goals(rows: Sequence[dict[str, Cell]]) -> tuple[Goal, ...]:
    fewer, most = (_adding(rows, queries) for queries in (FEWER, MOST))
    return (
        Goal(f"a new alert among {MOST:,}, ms of CPU", most, "no peer", most=MOST_MS),
        Goal(
            f"a new alert among {MOST:,}, by one among {FEWER:,}",
            most / fewer,
            f"{fewer:.3g} ms",
            most=MOST_GROWTH,
        ),
    )


def _adding(rows: Sequence[dict[str, Cell]], queries: int) -> float:
    """The milliseconds of adding one alert among so many."""
    row = next(row for row in rows if row["kind"] == GOAL_KIND and row["queries"] == queries)
    found = row["adding one, ms"]
    assert isinstance(found, float)
    return found


def grown(kind: str, steps: tuple[int, ...]) -> Iterator[tuple[Registry, Change, list[float]]]:
    """At each number of queries in `steps`: the registry, its last change, and the CPU seconds of each added
    query so far.
    """
    random = np.random.default_rng(1)
    registry = Registry(PLANNER, State(4), None, 0, 0)
    registry.done(registry.begin(0), 0)
    registry.done(registry.apply("".join(stream(name, DIMENSIONS) for name in "ab"), 0)[1], 0)
    add = _ADD[kind]
    spent: list[float] = []
    for number in itertools.count():
        began = time.process_time()
        change = add(registry, random, number)
        registry.done(change, 0)
        spent.append(time.process_time() - began)
        if len(spent) in steps:
            yield registry, change, spent
        if len(spent) == max(steps):
            return


def _grow(kind: str, steps: tuple[int, ...]) -> list[dict[str, Cell]]:
    collect_seldom()  # as the service does
    warm()
    rows: list[dict[str, Cell]] = []
    before = resident()
    for registry, change, spent in grown(kind, steps):
        assert change.written is not None
        size = resident()
        rows.append(
            {
                "kind": kind,
                "queries": len(spent),
                "topics": sum(len(one.topics) for one in registry.plan.streams),
                "adding one, ms": 1000 * float(np.median(spent[-WINDOW:])),
                "dropping one, ms": 1000 * float(np.median(list(_dropped(registry, kind, len(spent))))),
                "adding all, s": sum(spent),
                "plan, KB": change.written.size / 1024,
                "memory per query, KB": (size - before) / 1024 / len(spent),
            }
        )
    return rows


def _dropped(registry: Registry, kind: str, count: int) -> Iterator[float]:
    """CPU seconds of dropping each of some queries. The dropped state isn't kept: all queries stay."""
    for number in range(0, count, count // DROPPED):
        began = time.process_time()
        if kind == "outside readers":
            change = registry.release(list(registry.state.leases)[number], 0)[1]
        else:
            word = "STREAM" if kind == "derived streams" else "ALERT"
            change = registry.apply(f"DROP {word} q{number};", 0)[1]
        assert change.written is not None
        yield time.process_time() - began


def _ask(registry: Registry, random: np.random.Generator, _: int) -> Change:
    wanted = new_lease("a", filter_sql(random, DIMENSIONS, SHARE), "", 300, registry.state.catalog)
    return registry.subscribe(wanted, 0)[1]


def _join(registry: Registry, random: np.random.Generator, number: int) -> Change:
    # The difference of the two boxes' corners: a condition that no tuples of the boxes meet would be refused.
    side = width(DIMENSIONS, SHARE)
    p, q = (corner(random, DIMENSIONS, SHARE) for _ in range(2))
    lead = p[0] - q[0] + random.uniform(-side / 2, side / 2)
    return registry.apply(
        f"CREATE ALERT q{number} AS SELECT p.k, p.x0 FROM a p JOIN b q ON p.k = q.k AND q.ts BETWEEN p.ts - "
        "INTERVAL '5' SECOND AND p.ts + INTERVAL '5' SECOND WHERE p.x0 - q.x0 > "
        f"{lead:.3f} AND {box_sql(p, side, 'p.')} AND {box_sql(q, side, 'q.')};",
        0,
    )[1]


def _aggregate(registry: Registry, random: np.random.Generator, number: int) -> Change:
    return registry.apply(
        f"CREATE ALERT q{number} AS SELECT k, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '10' SECOND) WHERE "
        f"{filter_sql(random, DIMENSIONS, SHARE)} GROUP BY k, window_end HAVING count(*) > 3;",
        0,
    )[1]


def _derive(registry: Registry, random: np.random.Generator, number: int) -> Change:
    box = filter_sql(random, DIMENSIONS, SHARE)
    return registry.apply(f"CREATE STREAM q{number} AS SELECT k, ts, x0 FROM a WHERE {box};", 0)[1]


_ADD: dict[str, Callable[[Registry, np.random.Generator, int], Change]] = {
    "outside readers": _ask,
    "joins": _join,
    "aggregates": _aggregate,
    "derived streams": _derive,
}


def resident() -> float:
    """The size of this process, bytes."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * 4096

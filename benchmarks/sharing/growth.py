"""Queries that come one by one: time and memory of each as they grow to ten thousand."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.harness import Cell, Result, Say
from benchmarks.sharing.filters import filter_sql, stream
from tamis_registry.core.leases import new_lease
from tamis_registry.core.registry import Registry
from tamis_registry.core.state import State
from tamis_registry.planning import PLANNER

NAME = "sharing.growth"
STEPS = (100, 1_000, 2_000, 5_000, 10_000)
DIMENSIONS, SHARE = 3, 0.001
WINDOW = 100  # the last queries of a step, over which the median is taken
COLUMNS = ("queries", "topics", "ms for the next", "s in all", "plan, KB", "KB a query")


def run(quick: bool, say: Say) -> Result:
    """Measure. A quick run is for looking whether it works: its figures are of too little."""
    random = np.random.default_rng(1)
    registry = Registry(PLANNER, State(4), None, 0, 0)
    registry.done(registry.begin(0), 0)
    registry.done(registry.apply(stream("s", DIMENSIONS), 0)[1], 0)
    rows: list[dict[str, Cell]] = []
    spent: list[float] = []
    before = _resident()
    for goal in STEPS[:1] if quick else STEPS:
        while len(spent) < goal:
            began = time.process_time()
            wanted = new_lease("s", filter_sql(random, DIMENSIONS, SHARE), "", 300, registry.state.catalog)
            _, change = registry.subscribe(wanted, 0)
            registry.done(change, 0)
            spent.append(time.process_time() - began)
        say(f"{goal:,} queries after {sum(spent):.0f} s")
        rows.append(
            {
                "queries": goal,
                "topics": len(registry.plan.streams[0].topics),
                "ms for the next": 1000 * float(np.median(spent[-WINDOW:])),
                "s in all": sum(spent),
                "plan, KB": len(change.written.document) / 1024,
                "KB a query": (_resident() - before) / 1024 / goal,
            }
        )
    return Result(
        NAME,
        "Queries that come one by one",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "share": SHARE, "window": WINDOW, "quick": quick},
        (
            f"each asks for a box over {DIMENSIONS} attributes, {SHARE:.1%} of the stream, somewhere else",
            "ms for the next: CPU time from the predicate's text to the plan's bytes, without Kafka, median "
            f"of the last {WINDOW}",
            "KB a query: what the process grew by, with everything that is remembered between two plans",
        ),
    )


def _resident() -> float:
    """The greatest size of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0

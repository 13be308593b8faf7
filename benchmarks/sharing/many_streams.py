"""Plans of many streams with a few alerts each: what a new alert costs, and the parts written for it."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.compile_kernels import warm
from tamis.heap import collect_seldom
from tamis.plan.json_form import encode_plan
from tamis.plan.parts import PartRecord, parts
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

NAME = "sharing.many_streams"
STEPS = (10, 100, 1_000)
ALERTS = 10  # of each stream
NEXT = 20  # alerts that are added then, over which the median is taken
PARTITIONS = 4
COLUMNS = (
    "streams",
    "alerts",
    "adding one, ms",
    "plan, KB",
    "encoding the plan, ms",
    "making all parts, ms",
    "records of parts a version",
    "all parts, KB",
    "largest part, KB",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    collect_seldom()  # as the service does
    warm()
    rows: list[dict[str, Cell]] = []
    for streams in STEPS[:1] if quick else STEPS:
        rows.append(_measured(streams))
        say(f"{streams:,} streams")
    return Result(
        NAME,
        "Plans of many streams",
        COLUMNS,
        rows,
        {"alerts": ALERTS, "next": NEXT, "partitions": PARTITIONS, "quick": quick},
        (
            f"each stream has {ALERTS} alerts with a threshold of their own, which share its topic",
            f"adding one: CPU time from the SQL to the plan, without writing it; median of {NEXT} alerts on"
            " streams that are spread evenly over all",
            "each version of the plan is written into each partition of `tamis.plans`, and its parts into one"
            " topic for each stream; the sizes are those before compression",
        ),
    )


def _measured(streams: int) -> dict[str, Cell]:
    registry = Registry(PLANNER, State(PARTITIONS), None, 0, 0)
    registry.done(registry.begin(0), 0)
    _apply(registry, "".join(_stream(number) for number in range(streams)))
    for number in range(streams):
        _apply(registry, "".join(_alert(number, one) for one in range(ALERTS)))
    adding: list[float] = []
    for number in np.linspace(0, streams - 1, NEXT).astype(int):
        began = time.process_time()
        _apply(registry, _alert(number, ALERTS + len(adding)))
        adding.append(time.process_time() - began)
    began = time.process_time()
    document = encode_plan(registry.plan)
    encoded = time.process_time()
    records = [PartRecord([0] * PARTITIONS, text).encode() for text in parts(document).values()]
    made = time.process_time()
    assert len(records) == streams
    return {
        "streams": streams,
        "alerts": streams * ALERTS,
        "adding one, ms": 1000 * float(np.median(adding)),
        "plan, KB": len(document) / 1024,
        "encoding the plan, ms": 1000 * (encoded - began),
        "making all parts, ms": 1000 * (made - encoded),
        "records of parts a version": len(records),
        "all parts, KB": sum(map(len, records)) / 1024,
        "largest part, KB": max(map(len, records)) / 1024,
    }


def _apply(registry: Registry, sql: str) -> None:
    registry.done(registry.apply(sql, 0)[1], 0)


def _stream(number: int) -> str:
    return (
        f"CREATE STREAM s{number} (k VARCHAR KEY, ts TIMESTAMP NOT NULL, v DOUBLE NOT NULL,"
        " WATERMARK FOR ts AS ts - INTERVAL '1 second') WITH (keys = 1000, rate = '100/s');"
    )


def _alert(stream: int, number: int) -> str:
    return f"CREATE ALERT a{stream}_{number} AS SELECT k, ts, v FROM s{stream} WHERE v > {number};"

"""Limits of a growing installation, and the number at which each is reached: what breaks first."""

from __future__ import annotations

import math
from dataclasses import replace

from benchmarks.harness import Cell, Result, Say
from benchmarks.scale.queues import FIXED, MOST_ROWS
from benchmarks.scale.reckoned import MB, PARTS_PACKED, RARE, Installation, Measured, measure, tamis
from tamis.plan.wire import MOST
from tamis.sizing.figures import unit_costs

NAME = "scale.limits"
COLUMNS = ("what", "grows with", "limit", "reached at", "unit")
# The bytes a second that the brokers of the installation may spend on plans.
PLAN_BYTES = 100 * MB
# A change of an alert should be known everywhere within this time.
PLAN_SECONDS = 60.0


def run(quick: bool, say: Say) -> Result:
    """Compute each limit of the installation of docs/scale.md."""
    say("unit costs of progress records and plans")
    measured = measure(*((200, 11) if quick else (10_000, 101)))
    one = Installation()
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in limits(one, measured)]
    return Result(
        NAME,
        "What breaks first",
        COLUMNS,
        rows,
        {"rate": one.rate, "retained": one.retained, "quick": quick},
        (
            f"{one.rate:,.0f} readings/s, {one.retained:.0%} retained, {one.streams} shards an edge",
            f"plans: {PLAN_BYTES / MB:.0f} MB/s for {PLAN_SECONDS:.0f} s until all edges have read their"
            " parts of one, which list all shards of their streams",
            f"batches: {FIXED} s for each, whatever its number of tuples",
        ),
    )


def limits(one: Installation, measured: Measured) -> list[tuple[Cell, ...]]:
    """The limits in the order of the table's columns."""

    def equal(of: Installation) -> float:
        """The edges at which progress takes as many bytes as tuples."""
        needs = tamis(of, measured)
        return of.edges * needs["bytes of tuples to Kafka, MB/s"] / needs["bytes of progress, MB/s"]

    def read(of: Installation) -> float:
        """The compressed bytes of the parts of a plan that an edge reads."""
        return tamis(of, measured)[PARTS_PACKED] * MB

    # The parts list the shards of all edges: edges * (alerts + edges * shards) = bytes.
    alerts = read(replace(one, edges=0))
    shards = (read(one) - alerts) / one.edges
    readers = (math.sqrt(alerts**2 + 4 * shards * PLAN_BYTES * PLAN_SECONDS) - alerts) / (2 * shards)
    busy = unit_costs()["joiner_cpu_us_per_tuple"] / 1e6
    return [
        (
            "shards that a plan lists",
            "edges x streams",
            f"{MOST:,} shards",
            MOST / one.streams,
            "edges",
        ),
        (
            "bytes of progress",
            "edges x streams x partitions",
            "bytes of tuples",
            equal(one),
            "edges",
        ),
        (
            f"the same, progress every {RARE:.0f} s",
            "edges x streams x partitions",
            "bytes of tuples",
            equal(replace(one, progress=1 / RARE)),
            "edges",
        ),
        (
            "reading the parts of the plan",
            "edges x (alerts + edges x streams)",
            f"{PLAN_SECONDS:.0f} s",
            readers,
            "edges",
        ),
        (
            f"batches of {MOST_ROWS:,} rows",
            "tuples/s, however many cores",
            "full batches without pause",
            MOST_ROWS / FIXED,
            "tuples/s",
        ),
        (
            "the same on one core",
            "tuples/s",
            "full batches without pause",
            MOST_ROWS / (FIXED + busy * MOST_ROWS),
            "tuples/s",
        ),
    ]

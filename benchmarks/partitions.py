"""Cost of a reading at an edge and at the joiner as the partitions of the fleet grow from 1 to 64."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import Topics
from benchmarks.raw_readings import KEYS, RAW, SQL, Passed, fill, through_the_fleet
from tamis.local.fleet import Fleet, FleetSpec

NAME = "partitions"
PARTITIONS = (1, 4, 16, 64)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count, batch = (100_000, 2_000) if quick else (2_000_000, 25_000)
    found = {partitions: _passed(partitions, count, batch, say) for partitions in PARTITIONS}
    rows: list[dict[str, Cell]] = [
        {
            "partitions": partitions,
            "edge, CPU µs a raw reading": round(passed.edge.cpu * 1e6, 2),
            "joiner, CPU µs a retained tuple": round(passed.joiner.cpu / passed.retained * 1e6, 1),
            "joiner, GB": round(passed.memory / 1e9, 2),
        }
        for partitions, passed in found.items()
    ]
    few, many = found[PARTITIONS[1]], found[PARTITIONS[-1]]
    return Result(
        NAME,
        "Costs by the number of partitions",
        tuple(rows[0]),
        rows,
        {"keys": KEYS, "readings": count, "batch": batch, "quick": quick},
        (
            f"{count:,} raw readings of two streams; batches of the joiner have {batch:,} retained tuples,"
            " whatever the number of partitions",
            "joiner: all of its processes, without the start and the first batch",
        ),
        (
            Goal(
                "edge, 64 partitions: CPU a reading",
                many.edge.cpu / few.edge.cpu,
                "times that with 4",
                most=1.5,
            ),
        ),
    )


def _passed(partitions: int, count: int, batch: int, say: Say) -> Passed:
    with tempfile.TemporaryDirectory(prefix="tamis-bench-partitions-") as directory:
        fleet = Fleet(FleetSpec(Path(directory), (), partitions=partitions), say)
        try:
            fleet.start_registry()
            fleet.apply(SQL)
            topics = Topics(fleet.bootstrap, partitions)
            topics.create(RAW)
            say(f"{partitions} partitions: filling the topics")
            passed = through_the_fleet(fleet, topics, fill(topics, count), batch, say)
            topics.close()
        finally:
            fleet.stop()
    return passed

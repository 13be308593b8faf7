"""Edge and joiner beside Spark's own stream-stream join, on raw readings of independent values."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.joiner import PEER, PEER_ALARMS, distinct_alarms
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.raw_readings import (
    KEYS,
    RATE,
    RAW,
    SQL,
    Cost,
    Passed,
    fill,
    readings,
    through_the_fleet,
)
from benchmarks.spark_join import MASTER
from benchmarks.spark_queries import Input, Joined, follow, join_process
from tamis.local.fleet import Fleet, FleetSpec

NAME = "raw_join"
BOTH = "edge and joiner"


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    # Spark's own join takes much longer for a reading, so it gets the first of them only.
    count, peer_count, batch = (200_000, 60_000, 5_000) if quick else (2_000_000, 200_000, 25_000)
    with tempfile.TemporaryDirectory(prefix="tamis-bench-raw-") as temporary:
        directory = Path(temporary)
        fleet = Fleet(FleetSpec(directory, (), partitions=PARTITIONS), say)
        try:
            fleet.start_registry()
            fleet.apply(SQL)
            topics = Topics(fleet.bootstrap)
            first = (f"first.{RAW[0]}", f"first.{RAW[1]}")
            topics.create((*RAW, *first, PEER_ALARMS))
            say(f"filling the topics with {count:,} raw readings")
            topics.fill(readings(peer_count, first))
            passed = through_the_fleet(fleet, topics, fill(topics, count), batch, say)
            alarms = distinct_alarms(topics)
            say(f"{PEER}: starting")
            peer = _peer(fleet.bootstrap, directory, Input(first, peer_count, batch * 2), say)
            topics.close()
        finally:
            fleet.stop()
    return _result(quick, Cost.of(peer), passed, alarms)


def _peer(bootstrap: str, directory: Path, given: Input, say: Say) -> Joined:
    with join_process(bootstrap, directory, given.batch, (*given.topics, PEER_ALARMS)) as process:
        return follow(directory / "peer", process, given, say)


def _result(quick: bool, peer: Cost, passed: Passed, alarms: int) -> Result:
    """The table: seconds and CPU time for a raw reading, of each part and of edge and joiner together."""
    both = passed.edge + passed.joiner
    costs = {PEER: peer, "edge": passed.edge, "joiner": passed.joiner, BOTH: both}
    rows: list[dict[str, Cell]] = [
        {
            "what": what,
            "µs a raw reading": round(cost.seconds * 1e6, 2),
            "rate / Spark's join": round(peer.seconds / cost.seconds, 1),
            "CPU µs a raw reading": round(cost.cpu * 1e6, 2),
            "CPU, Spark's join / this": round(peer.cpu / cost.cpu, 1),
        }
        for what, cost in costs.items()
    ]
    beside = "times Spark's join of the raw readings"
    return Result(
        NAME,
        f"Edge and joiner beside Spark's join of raw readings, {MASTER}",
        tuple(rows[0]),
        rows,
        {"keys": KEYS, "rate": RATE, "partitions": PARTITIONS, "quick": quick, "retained": passed.retained},
        (
            "independent, evenly distributed values; 100 readings of each key and stream within the omission"
            f" interval, of which edges retain {passed.retained:.1%}",
            "edge and joiner run one after the other, and their times are added",
            "Spark's join reads the first tenth of the readings; all measurements leave the start out",
            f"the joiner raised {alarms:,} alarms and had {passed.memory / 1e9:.2f} GB at its end, with"
            " default settings and memory that its processes share counted once",
        ),
        (
            Goal("edge and joiner, raw readings: rate", peer.seconds / both.seconds, beside, least=30),
            Goal("joiner, two streams of 1,000 keys: resident memory", passed.memory / 1e9, "GB", most=1.2),
        ),
    )

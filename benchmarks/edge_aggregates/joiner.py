"""CPU time of the joiner for a reading, of partial aggregates and of every reading.

Edges' own runs make the records of both, in event time that goes on as the readings do.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.edge_aggregates.ways import KEYS, WAYS, Way
from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import RATE, SECOND, station
from benchmarks.spark_join import MASTER, MEMORY
from benchmarks.spark_queries import Input, Joined, follow, joiner_process
from tamis.expressions.vectors import Vector
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, FRONTIERS, PLANS, stream_topic
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

NAME = "edge_aggregates.joiner"
# Batches of the joiner. The first one is not measured.
BATCHES = 5
A_SECOND = KEYS * RATE
# Event time that an edge takes at once.
STEP = 10
# Minutes of event time, for a quick run and for figures. Partial aggregates are few records: several batches
# need more of them.
PARTIALS, READINGS = {True: 10, False: 90}, {True: 2, False: 3}


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    costs = {way.stream: _cost(way, (READINGS if way.raw else PARTIALS)[quick], say) for way in WAYS}
    rows: list[dict[str, Cell]] = [
        {
            "what": way.what,
            "CPU µs a reading": _micros(costs[way.stream]),
            "readings": costs[way.stream][1],
            "records": costs[way.stream][0].rows,
            "batches": costs[way.stream][0].batches,
        }
        for way in WAYS
    ]
    return Result(
        NAME,
        "Joiner, aggregates of windows",
        tuple(rows[0]),
        rows,
        {"keys": KEYS, "readings a second and key": RATE, "master": MASTER, "quick": quick},
        (
            "CPU of the driver, Spark's JVM and Python's workers together, between the end of the first batch"
            " and that of the last large one; readings, records: those of these batches",
            f"{PARTIALS[quick]} minutes of event time as partial aggregates, {READINGS[quick]} minutes of"
            " every reading",
        ),
        [
            Goal(
                f"{partials.what.partition(':')[0]}: CPU of the joiner",
                _micros(costs[raw.stream]) / _micros(costs[partials.stream]),
                "times less than of every reading",
                least=50,
            )
            for partials, raw in zip(WAYS[::2], WAYS[1::2], strict=True)
        ],
    )


def _micros(cost: tuple[Joined, float]) -> float:
    return cost[0].cpu / cost[1] * 1e6


def _cost(way: Way, minutes: int, say: Say) -> tuple[Joined, float]:
    """The work of the joiner, and the readings in the records of which it is measured."""
    plan = first_plan(catalog_of(way.sql), partitions=PARTITIONS, shards={way.stream: way.stream})
    topic = stream_topic(way.stream, 1)
    with (
        tempfile.TemporaryDirectory(prefix="tamis-bench-partials-") as temporary,
        EmbeddedKafka(Path(temporary) / "kafka") as broker,
    ):
        topics = Topics(broker.bootstrap)
        topics.create([PLANS, ALARMS, topic])
        topics.create([FRONTIERS, DEAD_LETTERS], 1)
        say(f"{way.what}: filling the topic with {minutes} minutes")
        topics.fill((PLANS, b'"plan"', encode_plan(plan), partition) for partition in range(PARTITIONS))
        topics.fill(_records(plan, way.stream, minutes))
        records = topics.end(topic)
        given = Input((topic,), records, -(-records // BATCHES))
        say(f"{way.what}: starting the joiner")
        settings = {"TAMIS_JOINER_MASTER": MASTER, "TAMIS_JOINER_MEMORY": MEMORY}
        with joiner_process(broker.bootstrap, Path(temporary), given.batch, settings) as process:
            spent = follow(Path(temporary) / "joiner" / "query", process, given, say)
        topics.close()
    return spent, spent.rows / records * minutes * 60 * A_SECOND


def _records(plan: Plan, stream: str, minutes: int) -> Iterator[tuple[str, bytes | None, bytes, int]]:
    """All that an edge sends to Kafka, which takes everything at once here."""
    shard, offset = ShardRun(stream, stream, Commit(), plan), 0
    random = np.random.default_rng(1)
    start = (int(time.time()) // 3600 - 24) * 3600 * SECOND
    names = np.array([station(number) for number in range(KEYS)], np.object_)
    count = STEP * A_SECOND
    for step in range(minutes * 60 // STEP):
        times = start + step * STEP * SECOND + np.arange(count) * SECOND // A_SECOND
        columns = {
            "station": Vector(np.tile(names, count // KEYS)),
            "ts": Vector(times),
            "temp": Vector(random.normal(15, 8, count).clip(-60, 70).round(2)),
            "rh": Vector(random.normal(60, 15, count).clip(1, 100).round(1)),
        }
        shard.take(Batch(columns, times, np.arange(offset, offset + count), times), 0)
        offset += count
        yield from _sent(shard)
        shard.commit()
        shard.committed(0)
        yield from _sent(shard)


def _sent(shard: ShardRun) -> Iterator[tuple[str, bytes | None, bytes, int]]:
    while shard.out:
        record = shard.out.popleft()
        shard.safe(record.token)
        yield record.topic, record.key, record.value, record.partition

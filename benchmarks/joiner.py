"""The joiner beside Spark's own stream-stream join, on the same retained tuples in the same topics."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
from tests.stream_records import progress_record

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import DEW_POINT, SECOND, station, stream
from benchmarks.spark_join import MASTER, MEMORY
from benchmarks.spark_queries import Input, Joined, follow, join_process, joiner_process
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.records import canonical_key
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import (
    ALARMS,
    DEAD_LETTERS,
    FRONTIERS,
    PLANS,
    stream_topic,
)
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

NAME = "joiner"
KEYS = 100_000
# Tuples of both streams in a second of event time: a tuple meets two or three of the other stream in ten
# seconds.
TUPLES_A_SECOND = 50_000
PEER_ALARMS = "peer.alarms"
PEER, JOINER, ONE_CORE = "Spark's stream-stream join", "joiner", "joiner, one core"
AIR, SURFACE = stream_topic("air", 1), stream_topic("surface", 1)

SQL = f"""{stream("air", KEYS)}{stream("surface", KEYS)}{DEW_POINT}
CREATE ALERT condensation WITH (gap = '1 minute') AS
SELECT a.station, a.ts, s.temp FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 0.5;
"""


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    tuples, batch = (60_000, 20_000) if quick else (800_000, 100_000)
    with tempfile.TemporaryDirectory(prefix="tamis-bench-joiner-") as temporary:
        directory = Path(temporary)
        with EmbeddedKafka(directory / "kafka") as broker:
            topics = Topics(broker.bootstrap)
            topics.create([PLANS, ALARMS, PEER_ALARMS, AIR, SURFACE])
            topics.create([FRONTIERS, DEAD_LETTERS], 1)
            say(f"filling the stream topics with {tuples:,} retained tuples")
            topics.fill(records(tuples))
            given = Input((AIR, SURFACE), topics.end(AIR) + topics.end(SURFACE), batch)
            found: dict[str, Joined] = {}
            say(f"{PEER}: starting")
            with join_process(broker.bootstrap, directory, batch, (AIR, SURFACE, PEER_ALARMS)) as process:
                found[PEER] = follow(directory / "peer", process, given, say)
            alarms = {PEER: topics.end(PEER_ALARMS)}
            for what, master in ((JOINER, MASTER), (ONE_CORE, "local[1]")):
                say(f"{what}: starting")
                own = directory / what
                own.mkdir()
                same = {"TAMIS_JOINER_MASTER": master, "TAMIS_JOINER_MEMORY": MEMORY}
                with joiner_process(broker.bootstrap, own, batch, same) as process:
                    found[what] = follow(own / "joiner" / "query", process, given, say)
                # The joiner on one core raises the same alarms again.
                alarms[what] = distinct_alarms(topics)
            topics.close()
    peer, joiner, one = (found[what] for what in (PEER, JOINER, ONE_CORE))
    rows: list[dict[str, Cell]] = [
        {
            "what": what,
            "rows/s": round(joined.rows / joined.seconds),
            "rate / Spark's join": round(joined.rows / joined.seconds / (peer.rows / peer.seconds), 2),
            "CPU µs a row": round(joined.cpu / joined.rows * 1e6, 1),
            "rows": joined.rows,
            "batches": joined.batches,
            "alarms": alarms[what],
        }
        for what, joined in found.items()
    ]
    return Result(
        NAME,
        f"Joiner, Kafka to Kafka, {MASTER}",
        ("what", "rows/s", "rate / Spark's join", "CPU µs a row", "rows", "batches", "alarms"),
        rows,
        {
            "tuples": tuples,
            "keys": KEYS,
            "partitions": PARTITIONS,
            "batch": batch,
            "master": MASTER,
            "memory": MEMORY,
            "quick": quick,
        },
        (
            "a measurement starts at the end of the first batch and ends with the last large batch; so the"
            " start of the JVM, code generation and the start of Python's workers are left out",
            "both programs have the same topics, trigger, batch size, time bounds, sink, and state store"
            " (RocksDB with changelog)",
            "alarms: number of different alarms for all tuples; Spark's join drops tuples behind its"
            " watermark",
        ),
        (
            Goal(
                f"joiner, {KEYS:,} keys: rate",
                (joiner.rows / joiner.seconds) / (peer.rows / peer.seconds),
                "times Spark's join of the same tuples",
                least=6,
            ),
            Goal(
                "joiner, two tasks: CPU a row",
                (joiner.cpu / joiner.rows) / (one.cpu / one.rows),
                "times that of one task on one core",
                most=1.1,
            ),
        ),
    )


def records(tuples: int) -> Iterator[tuple[str, bytes | None, bytes, int]]:
    """The plan, and what one edge would have retained: independent values of random stations in order of
    time, progress of both streams once a second.
    """
    plan = _plan()
    for partition in range(PARTITIONS):
        yield PLANS, b'"plan"', encode_plan(plan), partition
    random = np.random.default_rng(1)
    start = (int(time.time()) - 86_400) * SECOND
    keys = [canonical_key((station(number),)) for number in range(KEYS)]
    stations = random.integers(0, KEYS, tuples).tolist()
    temps = {AIR: random.normal(15, 3, tuples).round(2), SURFACE: random.normal(20, 3, tuples).round(2)}
    humidity = np.clip(random.normal(60, 10, tuples), 5, 99).round(1).tolist()
    columns = {topic: temp.tolist() for topic, temp in temps.items()}
    shards = {AIR: "air", SURFACE: "surface"}
    ends = {topic: {"shard": shard, "plan": 1, "activation": 0} for topic, shard in shards.items()}
    for number, key in enumerate(stations):
        topic = (AIR, SURFACE)[number % 2]
        event_time = start + number * SECOND // TUPLES_A_SECOND
        value = {"station": station(key), "ts": event_time, "temp": columns[topic][number]}
        if topic == AIR:
            value["rh"] = humidity[number]
        yield topic, keys[key], orjson.dumps(value | {"_": ends[topic]}), -1
        if number % TUPLES_A_SECOND == TUPLES_A_SECOND - 1:
            for name, shard in shards.items():
                for partition in range(PARTITIONS):
                    yield name, None, progress_record(shard, 1, 0, event_time), partition


def _plan() -> Plan:
    return first_plan(catalog_of(SQL), partitions=PARTITIONS, shards={"air": "air", "surface": "surface"})


def distinct_alarms(topics: Topics) -> int:
    """Number of different alarms that the joiner has raised."""
    with TopicReader(topics.config, [ALARMS]) as reader:
        return len({orjson.loads(record.value)["id"] for record in reader.snapshot() if record.value})

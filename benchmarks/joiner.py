"""The joiner beside Spark's own stream-stream join, on the same retained tuples in the same topics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
import psutil

from benchmarks.harness import Cell, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import DEW_POINT, SECOND, station, stream
from benchmarks.spark_join import MASTER, MEMORY
from tamis.errors import UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.ports import free_ports
from tamis.local.service_process import ServiceProcess
from tamis.messaging.records import canonical_key, progress_record
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import (
    ALARMS,
    DEAD_LETTERS,
    FRONTIERS,
    PLANS,
    STREAM_PREFIX,
    stream_topic,
)
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

NAME = "joiner"
KEYS = 10_000
# Tuples of both streams in a second of event time: a tuple meets five of the other stream in ten seconds.
TUPLES_A_SECOND = 10_000
PEER_ALARMS = "peer.alarms"
AIR, SURFACE = stream_topic("air", 1), stream_topic("surface", 1)
LOOK_SECONDS = 0.1
PATIENCE = 900.0
ROOT = Path(__file__).resolve().parents[1]

SQL = f"""{stream("air", KEYS)}{stream("surface", KEYS)}{DEW_POINT}
CREATE ALERT condensation WITH (gap = '1 minute') AS
SELECT a.station, a.ts, s.temp FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 0.5;
"""


@dataclass(frozen=True)
class Joined:
    """Rows between the end of the first batch and that of the last, and what they cost."""

    rows: int
    batches: int
    seconds: float
    cpu: float


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
            topics.fill(_records(tuples))
            total = topics.end(AIR) + topics.end(SURFACE)
            found: dict[str, Joined] = {}
            for name, start, checkpoint in (
                ("Spark's stream-stream join", _spark, "peer"),
                ("joiner", _joiner, "joiner/query"),
            ):
                say(f"{name}: starting")
                with start(broker.bootstrap, directory, batch) as process:
                    found[name] = _follow(directory / checkpoint, process, total, batch, say)
            alarms = {
                "Spark's stream-stream join": topics.end(PEER_ALARMS),
                "joiner": _distinct(topics),
            }
            topics.close()
    peer = found["Spark's stream-stream join"]
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
    )


def _records(tuples: int) -> Iterator[tuple[str, bytes | None, bytes, int]]:
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


@contextmanager
def _joiner(bootstrap: str, directory: Path, batch: int) -> Iterator[psutil.Process]:
    (port,) = free_ports(1)
    environment = {
        "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
        "TAMIS_DATA": str(directory),
        "TAMIS_TELEMETRY_PORT": str(port),
        "TAMIS_JOINER_BATCH": str(batch),
        "TAMIS_JOINER_MASTER": MASTER,
        "TAMIS_JOINER_MEMORY": MEMORY,
    }
    url = f"http://127.0.0.1:{port}/readyz"
    process = ServiceProcess("joiner", ["joiner"], environment, directory / "joiner.log", url)
    process.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.stop()


@contextmanager
def _spark(bootstrap: str, directory: Path, batch: int) -> Iterator[psutil.Process]:
    arguments = [bootstrap, str(directory / "peer"), str(batch), AIR, SURFACE, PEER_ALARMS]
    with (directory / "peer.log").open("wb") as log:
        process = subprocess.Popen(
            with_parent_death_signal([sys.executable, "-m", "benchmarks.spark_join", *arguments]),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _follow(checkpoint: Path, process: psutil.Process, total: int, batch: int, say: Say) -> Joined:
    """Watch the query's own checkpoint, which says when a batch was done and up to which offsets it read."""
    done: dict[int, tuple[float, int, float]] = {}  # batch -> its end, rows up to it, CPU seconds by then
    deadline = time.monotonic() + PATIENCE
    while not done or done[max(done)][1] < total:
        if time.monotonic() > deadline or not process.is_running() or process.status() == "zombie":
            raise UnavailableError("the query did not read its topics to their end", where=str(checkpoint))
        for commit in (checkpoint / "commits").glob("[0-9]*"):
            number = int(commit.name)
            if number not in done:
                rows = _rows(checkpoint / "offsets" / commit.name)
                done[number] = commit.stat().st_mtime, rows, _cpu(process)
                say(f"{rows:,} of {total:,} rows")
        time.sleep(LOOK_SECONDS)
    ends = [done[number] for number in sorted(done)]
    # What rounding leaves over for a last batch of a few rows would cost as much as a large one.
    large = [now for before, now in pairwise(ends) if now[1] - before[1] >= batch / 2]
    first, last = ends[0], large[-1]
    return Joined(last[1] - first[1], len(large), last[0] - first[0], last[2] - first[2])


def _rows(offsets: Path) -> int:
    """The records of stream topics that were read by the end of a batch: Kafka counts offsets from 0."""
    _, _, *sources = offsets.read_text().splitlines()
    return sum(
        sum(partitions.values())
        for source in sources
        for topic, partitions in orjson.loads(source).items()
        if topic.startswith(STREAM_PREFIX)
    )


def _cpu(process: psutil.Process) -> float:
    """Of the service, Spark's JVM and its Python workers together."""
    seconds = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        seconds += times.user + times.system
    return seconds


def _distinct(topics: Topics) -> int:
    with TopicReader(topics.config, [ALARMS]) as reader:
        return len({orjson.loads(record.value)["id"] for record in reader.snapshot() if record.value})

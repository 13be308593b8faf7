"""Latency of two queries of Spark, at the rate at which alarm latency is measured: a copy, and a join."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import orjson
from confluent_kafka import Producer

from benchmarks.harness import Say
from benchmarks.kafka import Topics
from benchmarks.readings import readings_of_now
from benchmarks.spark_latency import COPY, JOIN
from tamis.errors import UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.messaging.topic_reader import TopicReader

ROOT = Path(__file__).resolve().parents[1]
AIR, SURFACE, OUT = "peer.air", "peer.surface", "peer.out"
PEERS = {COPY: "Spark: a copy of both topics", JOIN: "Spark's stream-stream join"}
TICK = 0.05
LOOK_SECONDS = 0.5
PATIENCE = 180.0
STOP_SECONDS = 30.0


def waits(query: str, load: tuple[int, int], warm_up: float, seconds: float, say: Say) -> list[float]:
    """Seconds from the event time of a reading, which is the time at which it is sent, to the timestamp in
    Kafka of what the query makes of it. `load`: keys, and readings of both streams in a second.
    """
    say(f"{PEERS[query]}: starting")
    with (
        tempfile.TemporaryDirectory(prefix="tamis-bench-latency-") as directory,
        EmbeddedKafka(Path(directory) / "kafka") as broker,
    ):
        topics = Topics(broker.bootstrap)
        topics.create((AIR, SURFACE, OUT))
        try:
            with spark_query(query, broker.bootstrap, Path(directory)), _feeding(topics, *load):
                _until(topics, 0.0)
                time.sleep(warm_up)
                say(f"{PEERS[query]}: measuring for {seconds:.0f} s")
                began = time.time()
                time.sleep(seconds)
                ended = time.time()
                _until(topics, ended)
            return [wait for at, wait in _written(topics) if began <= at < ended]
        finally:
            topics.close()


def _written(topics: Topics) -> list[tuple[float, float]]:
    """Event time in seconds, and seconds from then on, of every record that the query has written."""
    with TopicReader(topics.config, [OUT]) as reader:
        found = [(orjson.loads(r.value)["ts"] / 1e6, r.timestamp / 1e3) for r in reader.snapshot() if r.value]
    return [(at, written - at) for at, written in found]


def _until(topics: Topics, time_: float) -> None:
    """Wait until the query has written records from after that event time."""
    deadline = time.monotonic() + PATIENCE
    while max((at for at, _ in _written(topics)), default=0.0) <= time_:
        if time.monotonic() > deadline:
            raise UnavailableError(f"the query wrote nothing within {PATIENCE:.0f} s", where=OUT)
        time.sleep(LOOK_SECONDS)


@contextmanager
def _feeding(topics: Topics, keys: int, rate: int) -> Iterator[None]:
    """Send readings of now to both topics, at an even rate."""
    stopping = threading.Event()
    producer = Producer(
        {**topics.config, "linger.ms": 5, "enable.idempotence": True, "partitioner": "murmur2_random"}
    )

    def feed() -> None:
        random = np.random.default_rng(7)
        began, sent = time.monotonic(), 0
        while not stopping.wait(TICK):
            count = int(rate / 2 * (time.monotonic() - began)) - sent
            for topic in (AIR, SURFACE):
                for row in readings_of_now(count, keys, random):
                    producer.produce(topic, orjson.dumps(row), orjson.dumps([row["station"]]))
            producer.poll(0)
            sent += count

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        producer.flush(STOP_SECONDS)


@contextmanager
def spark_query(query: str, bootstrap: str, directory: Path) -> Iterator[None]:
    """Run a query of Spark in a process of its own; its checkpoint and its log are in a directory."""
    arguments = [sys.executable, "-m", "benchmarks.spark_latency", query, bootstrap]
    with (directory / "spark.log").open("wb") as log:
        process = subprocess.Popen(
            with_parent_death_signal([*arguments, str(directory / "checkpoint"), AIR, SURFACE, OUT]),
            cwd=ROOT,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

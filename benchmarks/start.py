"""Time from the start of a fleet to its first alarm, beside Kafka and a bare Spark query, and of the demo."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from confluent_kafka import Producer

from benchmarks.harness import Goal, Result, Say
from benchmarks.kafka import Topics
from benchmarks.latency_peers import AIR, OUT, SURFACE, spark_query
from benchmarks.spark_latency import COPY
from tamis.errors import TamisError, UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS

NAME = "start"
ROOT = Path(__file__).resolve().parents[1]
SQL = ROOT / "demo" / "first" / "alerts.sql"
# Two readings of which the alert of the first query makes one alarm.
READINGS = {
    "air": {"station": "k1", "ts": "2026-01-01T06:00:00Z", "temp": 12.0, "rh": 99.0},
    "surface": {"station": "k1", "ts": "2026-01-01T06:00:09Z", "temp": 3.5},
}
LOOK_SECONDS = 0.05
PATIENCE = 300.0
DEMO_SECONDS = 900.0

SPARK = "embedded Kafka and a Spark query that copies, to its first record"
FLEET = "tamis up, to the first alarm"
DEMO = "tamis demo"

_TOOK = re.compile(r"^the demo took (\d+) s$", re.MULTILINE)


@dataclass(frozen=True)
class Start:
    """Seconds until the first record was in Kafka, and CPU seconds of all processes until then."""

    seconds: float
    cpu: float


class Clock:
    """The time and the CPU time of this process' children since it was made."""

    def __init__(self) -> None:
        self._began, self._cpu = time.time(), _cpu_of_children()

    def start(self, timestamp: int) -> Start:
        """Time and CPU time until a record with this timestamp of Kafka, in milliseconds, was written."""
        return Start(timestamp / 1e3 - self._began, _cpu_of_children() - self._cpu)


class Poster(threading.Thread):
    """Posts the readings as soon as the edge answers."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(name="poster", daemon=True)
        self._fleet = fleet
        self._closing = threading.Event()

    def run(self) -> None:
        """Post each reading once."""
        left = dict(READINGS)
        with httpx.Client(timeout=30, trust_env=False) as client:
            while left and not self._closing.wait(LOOK_SECONDS):
                for url in self._fleet.http_sources.values():
                    stream, reading = next(iter(left.items()))
                    # The edge isn't up, or has no plan yet.
                    with suppress(httpx.HTTPError):
                        client.post(f"{url}/v1/streams/{stream}", json=reading).raise_for_status()
                        del left[stream]

    def close(self) -> None:
        """End it."""
        self._closing.set()
        self.join()


def run(_: bool, say: Say) -> Result:
    """Run the benchmark once; a quick run is the same."""
    say(f"{SPARK}: starting")
    spark = _spark()
    say(f"{FLEET}: starting")
    fleet = _fleet(say)
    say(f"{DEMO}: starting")
    demo = _demo()
    ratio = round(fleet.seconds / spark.seconds, 2)
    return Result(
        NAME,
        "Start, until the first result is in Kafka",
        ("what", "seconds", "times Spark's", "CPU s"),
        [
            {"what": SPARK, "seconds": round(spark.seconds, 1), "times Spark's": 1.0, "CPU s": spark.cpu},
            {"what": FLEET, "seconds": round(fleet.seconds, 1), "times Spark's": ratio, "CPU s": fleet.cpu},
            {"what": DEMO, "seconds": demo.seconds, "CPU s": demo.cpu},
        ],
        {"readings": len(READINGS)},
        (
            "to the first record: until the timestamp of a record that was in its topic when Spark started",
            "to the first alarm: until the timestamp of the alarm of two readings, which are posted over HTTP"
            " as soon as the edge answers",
            "tamis demo: all of it, with the replay of 18,914 readings and the check of its alarms",
            "CPU: user and system time of all processes; other programs on the machine affect it less",
        ),
        (
            Goal("start, tamis up to the first alarm", ratio, "times Kafka and a bare Spark copy", most=1.4),
            Goal("tamis demo, s", demo.seconds, "", most=60),
        ),
    )


def _spark() -> Start:
    with tempfile.TemporaryDirectory(prefix="tamis-bench-start-") as directory:
        clock = Clock()
        with EmbeddedKafka(Path(directory) / "kafka") as broker:
            topics = Topics(broker.bootstrap)
            try:
                topics.create((AIR, SURFACE, OUT))
                producer = Producer(topics.config)
                producer.produce(AIR, b"{}", b"k1")
                producer.flush(PATIENCE)
                with spark_query(COPY, broker.bootstrap, Path(directory)):
                    return clock.start(_first(topics.config, OUT))
            finally:
                topics.close()


def _fleet(say: Say) -> Start:
    with tempfile.TemporaryDirectory(prefix="tamis-bench-start-") as directory:
        clock = Clock()
        fleet = Fleet(FleetSpec(Path(directory), [EdgeSpec("edge")]), say)
        poster = Poster(fleet)
        try:
            poster.start()
            fleet.start({str(SQL): SQL.read_text()})
            return clock.start(_first(fleet.kafka_settings().client_config(), ALARMS))
        finally:
            poster.close()
            fleet.stop()


def _demo() -> Start:
    before = _cpu_of_children()
    done = subprocess.run(
        [sys.executable, "-m", "tamis.cli", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEMO_SECONDS,
    )
    took = _TOOK.search(done.stdout)
    if done.returncode or took is None:
        raise TamisError(f"the demo failed:\n{done.stdout}{done.stderr}")
    return Start(float(took[1]), _cpu_of_children() - before)


def _first(config: dict[str, object], topic: str) -> int:
    """The timestamp of the first record of a topic, in milliseconds."""
    deadline = time.monotonic() + PATIENCE
    with TopicReader(config, [topic]) as reader:
        found = list(reader.snapshot())
        while not found:
            if time.monotonic() > deadline:
                raise UnavailableError(f"no record within {PATIENCE:.0f} s", where=topic)
            found = reader.poll(LOOK_SECONDS)
        return min(record.timestamp for record in found)


def _cpu_of_children() -> float:
    """CPU seconds of all processes that this one has started, and of theirs, also of ended ones."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds

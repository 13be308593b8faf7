"""The alerts service on a topic full of alarms, beside a bare loop that consumes and decodes them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil
from confluent_kafka import Consumer, TopicPartition

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from tamis.errors import UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.fleet import READY_SECONDS
from tamis.local.scrape import Scrape
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES, FRONTIERS, PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_alerts.service import GROUP

NAME = "alerts"
SECOND = 1_000_000
SPAN = 3_600  # seconds of event time that the alarms of each key are spread over
BATCH = 10_000
WARM_UP = 0.2
LOOK_SECONDS = 0.1
# 20,000 alarms a second for a worker, which has one thread for them.
GOAL_MICROSECONDS = 50.0
PATIENCE = 900.0

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE ALERT hot WITH (gap = '1 minute', max_delay = '0 seconds') AS
SELECT a.station, a.temp, s.temp AS surface FROM air a JOIN surface s
  ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '5' SECOND
WHERE a.temp - s.temp > 3;
"""


@dataclass(frozen=True)
class Passed:
    """Alarms taken after the warm-up, and the seconds and the CPU seconds that they took."""

    alarms: float
    seconds: float
    cpu: float

    @property
    def cpu_each(self) -> float:
        """CPU microseconds of an alarm."""
        return self.cpu / self.alarms * 1e6


@dataclass(frozen=True)
class Case:
    """A number of keys that share the alarms, and of workers that share the partitions."""

    keys: int
    workers: int

    @property
    def what(self) -> str:
        """Its name in the table."""
        workers = "alerts" if self.workers == 1 else f"alerts, {self.workers} workers"
        return f"{workers}, {self.keys:,} keys"


# Of each key, many alarms or few.
CASES = (Case(100, 1), Case(10_000, 1), Case(20_000, 2))


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count = 20_000 if quick else 200_000
    rows: list[dict[str, Cell]] = []
    goals: list[Goal] = []
    for case in CASES:
        with (
            tempfile.TemporaryDirectory(prefix="tamis-bench-alerts-") as directory,
            EmbeddedKafka(Path(directory) / "kafka") as broker,
        ):
            topics = Topics(broker.bootstrap)
            try:
                # Half of the alarms may be taken before all workers have their partitions.
                alarms = count if case.workers == 1 else 2 * count
                say(f"{case.what}: filling the topic with {alarms:,} alarms")
                _fill(topics, alarms, case.keys)
                bare = _bare(topics, alarms)
                say(f"{case.what}: the service")
                service = _service(broker.bootstrap, topics, Path(directory), alarms, case.workers)
            finally:
                topics.close()
        if case.workers == 1:
            rows.append(_row(f"bare loop, {case.keys:,} keys", bare, bare))
        rows.append(_row(case.what, service, bare))
        peer = f"µs an alarm; the bare loop takes {bare.cpu_each:.3g}"
        goals.append(Goal(f"{case.what}: CPU", service.cpu_each, peer, most=GOAL_MICROSECONDS))
    return Result(
        NAME,
        "Alarms into episodes",
        ("what", "alarms/s", "CPU µs an alarm", "CPU / bare loop"),
        rows,
        {"alarms": count, "span": SPAN, "partitions": PARTITIONS, "quick": quick},
        (
            f"a measurement starts after the first {WARM_UP:.0%} of the alarms and ends when the offset of"
            " the last alarm is committed",
            "with 10,000 keys, each alarm opens an episode, which is written, logged and remembered",
            "two workers: the measurement starts when both have partitions; each is pinned to a core, and"
            " Kafka runs on the same cores",
            "CPU: user and system time of all threads of the process; other programs on the machine affect it"
            " less than alarms/s",
        ),
        goals,
    )


def _row(what: str, passed: Passed, bare: Passed) -> dict[str, Cell]:
    return {
        "what": what,
        "alarms/s": round(passed.alarms / passed.seconds),
        "CPU µs an alarm": round(passed.cpu_each, 1),
        "CPU / bare loop": round(passed.cpu_each / bare.cpu_each, 1),
    }


def _alarms(count: int, keys: int) -> Iterator[tuple[str, bytes | None, bytes, int]]:
    """Each key in turn, its alarms evenly over the span."""
    began = 1_700_000_000 * SECOND
    rounds = max(1, count // keys)
    for number in range(count):
        station, at = f"station{number % keys:06}", began + number // keys * SPAN * SECOND // rounds
        value = {
            "alert": "hot",
            "id": f"{number * 0x9E3779B97F4A7C15 % 2**128:032x}",
            "key": [station],
            "event_time": at,
            "row": {"station": station, "temp": 21.5, "surface": 17.25},
            "tuples": {name: {"station": station, "ts": at, "temp": 21.5} for name in "as"},
            "plan": 1,
            "definition": 1,
            "arrived": at,
        }
        yield ALARMS, orjson.dumps(["hot", station]), orjson.dumps(value), -1


def _fill(topics: Topics, count: int, keys: int) -> None:
    topics.create((ALARMS, EPISODES, PLANS))
    topics.create((FRONTIERS, DEAD_LETTERS), partitions=1)
    plan = encode_plan(first_plan(catalog_of(SQL), partitions=PARTITIONS))
    topics.fill((PLANS, b"plan", plan, number) for number in range(PARTITIONS))
    topics.fill(_alarms(count, keys))


def _bare(topics: Topics, count: int) -> Passed:
    """Consume and decode: the least that any consumer of alarms must do."""
    consumer = Consumer({**topics.config, "group.id": "bare", "enable.auto.commit": False})
    consumer.assign([TopicPartition(ALARMS, number, 0) for number in range(PARTITIONS)])
    taken = 0

    def look() -> float:
        nonlocal taken
        for message in consumer.consume(BATCH, 0.02):
            value = message.value()
            if message.error() is not None or value is None:
                raise UnavailableError(f"the bare loop could not read: {message.error()}", where=ALARMS)
            orjson.loads(value)
            taken += 1
        return taken

    passed = _follow(look, time.process_time, count)
    consumer.close()
    return passed


def _service(bootstrap: str, topics: Topics, directory: Path, count: int, workers: int) -> Passed:
    ports = free_ports(workers)
    for number in range(workers):
        (directory / f"worker{number}").mkdir()
    processes = [
        ServiceProcess(
            NAME,
            ["alerts"],
            {
                "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
                "TAMIS_DATA": str(directory / f"worker{number}"),
                "TAMIS_TELEMETRY_PORT": str(port),
            },
            directory / f"alerts{number}.log",
            f"http://127.0.0.1:{port}/readyz",
        )
        for number, port in enumerate(ports)
    ]
    offsets = Consumer({**topics.config, "group.id": GROUP, "enable.auto.commit": False})

    def look() -> float:
        time.sleep(LOOK_SECONDS)
        wanted = [TopicPartition(ALARMS, number) for number in range(PARTITIONS)]
        return sum(max(0, at.offset) for at in offsets.committed(wanted, timeout=READY_SECONDS))

    try:
        for process in processes:
            process.start()
        for process in processes:
            process.wait_ready(READY_SECONDS)
        running = [psutil.Process(process.pid) for process in processes]
        if workers > 1:
            _share(running, ports)

        def cpu() -> float:
            times = [one.cpu_times() for one in running]
            return sum(one.user + one.system for one in times)

        return _follow(look, cpu, count)
    finally:
        for process in processes:
            process.stop()
        offsets.close()


def _share(running: Sequence[psutil.Process], ports: Sequence[int]) -> None:
    """Pin each worker to a core, and wait until each has its share of the partitions."""
    cores = os.sched_getaffinity(0)
    for one, core in zip(running, sorted(cores), strict=False):
        one.cpu_affinity([core])
    deadline = time.monotonic() + PATIENCE
    while any(_partitions(port) != PARTITIONS / len(ports) for port in ports):
        _check(deadline)
        time.sleep(LOOK_SECONDS)


def _partitions(port: int) -> float:
    return Scrape.of(f"http://127.0.0.1:{port}").total("tamis_alerts_partitions")


def _follow(look: Callable[[], float], cpu: Callable[[], float], count: int) -> Passed:
    """`look` says how many were taken so far."""
    deadline = time.monotonic() + PATIENCE
    taken = look()
    while taken < WARM_UP * count:
        taken = look()
        _check(deadline)
    first, began, used = taken, time.perf_counter(), cpu()
    while taken < count:
        taken = look()
        _check(deadline)
    return Passed(count - first, time.perf_counter() - began, cpu() - used)


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise UnavailableError(f"the alarms were not taken within {PATIENCE:.0f} s", where=ALARMS)

"""An edge from Kafka to Kafka beside a bare loop that consumes, decodes and publishes the same readings."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx
import numpy as np
import orjson
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.harness import Cell, Goal, Result, Say, best
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import DEW_POINT, SECOND, stream, weather
from tamis.errors import UnavailableError
from tamis.local.fleet import READY_SECONDS, Fleet, FleetSpec
from tamis.local.scrape import Scrape
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.topics import stream_topic
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.kafka.topic import PREFETCH

NAME = "edge"
KEYS = 1_000
BATCH = 10_000
# What passes first, while connections are made and caches are cold, is left out of all measurements alike.
WARM_UP = 0.1
SOURCE, BARE = "raw.air", "bare.air"
LOOK_SECONDS = 0.2
# An edge that has not read everything by then hangs.
PATIENCE = 600.0

# The same alert on streams of the same readings: with omission for one edge, for one edge on one core and for
# two edges, and without omission.
ALERT = """
CREATE ALERT {name} WITH ({options}) AS
SELECT a.station, a.ts, s.temp FROM {air} a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.rh > 30 AND dew_point(a.temp, a.rh) - s.temp > 0.5;
"""
OMITTING, WHOLE = ("air", "air_of_one_core", "air_of_two_edges"), "whole_air"
SQL = stream("surface", KEYS) + DEW_POINT


def _query(name: str) -> str:
    """The stream of that name and its alert."""
    options = "max_delay = '0 seconds'" if name == WHOLE else "gap = '1 minute'"
    return stream(name, KEYS) + ALERT.format(name=f"condensation_{name}", air=name, options=options)


CONFIG = """
batch: {{rows: {batch}}}
sources:
  - {{kind: kafka, name: raw, topic: {topic}, stream: {stream}, group: {stream}}}
"""


@dataclass(frozen=True)
class Passed:
    """Tuples that went through after the warm-up, the seconds and the process's CPU seconds that they took,
    and records published of all. `memory`: the resident bytes of an edge when it was ready, and the most that
    it had afterwards.
    """

    tuples: float
    seconds: float
    cpu: float
    published: int
    memory: tuple[int, int] | None = None


@dataclass(frozen=True)
class EdgeRun:
    """An edge: its name, the text of its configuration, and the topics to which it publishes. `cores`: as
    many edges of one consumer group as cores, each pinned to one of them; without any, one edge anywhere.
    `sql`: applied when all edges have their partitions, so that none begins before the others.
    """

    name: str
    config: str
    topics: Sequence[str]
    cores: Sequence[int] = ()
    sql: str = ""


@dataclass(frozen=True)
class Size:
    """Of what is in the source topic."""

    tuples: int
    bytes: int


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    # Fewer are decided between two looks at the metrics of a quick machine.
    count = 200_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="tamis-bench-edge-") as directory:
        say("per stage, on one core")
        stages = _stages(20_000 if quick else 100_000)
        fleet = Fleet(FleetSpec(Path(directory), (), partitions=PARTITIONS), say)
        try:
            fleet.start_registry()
            fleet.apply(SQL)
            topics = Topics(fleet.bootstrap)
            topics.create([SOURCE, BARE])
            size = filled(topics, count, say)
            say("bare loop")
            before = bare_loop(topics, count)
            say("bare loop with the edge's client settings")
            same = bare_loop(topics, count, PREFETCH)
            passed = {}
            for name in (*OMITTING, WHOLE):
                say(f"edge, stream {name}")
                passed[name] = _edge(fleet, topics, name, size)
            say("bare loop again")
            after = bare_loop(topics, count)
            topics.close()
        finally:
            fleet.stop()
    bare = (before.tuples + after.tuples) / (before.seconds + after.seconds)
    peers = bare, same.tuples / same.seconds
    rows: list[dict[str, Cell]] = [
        _row("bare loop, before", before, peers, count),
        _row("bare loop, client settings of the edge", same, peers, count),
        _row("edge, omission", passed["air"], peers, count),
        _row("edge, every tuple that passes the predicate", passed[WHOLE], peers, count),
        _row("edge, omission, on one core", passed[OMITTING[1]], peers, count),
        _row("two edges of a group, omission, a core each", passed[OMITTING[2]], peers, count),
        _row("bare loop, after", after, peers, count),
        *({"what": f"  stage: {what}", "tuples/s": speed} for what, speed in stages.items()),
    ]
    return Result(
        NAME,
        "Edge, Kafka to Kafka",
        (
            "what",
            "tuples/s",
            "rate / bare loop",
            "rate / same settings",
            "CPU µs a tuple",
            "published",
            "MB at start",
            "MB under load",
        ),
        rows,
        {
            "tuples": count,
            "bytes a reading": round(size.bytes / count),
            "keys": KEYS,
            "partitions": PARTITIONS,
            "batch": BATCH,
            "quick": quick,
        },
        (
            f"a measurement starts after the first {WARM_UP:.0%} of the tuples and ends when Kafka has the"
            " last published record",
            "rate / bare loop: tuples/s divided by the mean of both runs of the bare loop, whose client has"
            " default settings",
            "rate / same settings: the same for the bare loop whose client prefetches as an edge's does",
            "MB: resident memory of the process (of two, the larger), with its shared libraries",
            "on one core, a core each: edges are pinned to cores, and Kafka runs on the same two cores",
            "stages: two parts of an edge's work, measured alone, without Kafka",
            "CPU: user and system time of all threads of the process; other programs on the machine affect it"
            " less than tuples/s",
        ),
        _goals(passed, bare),
    )


def _goals(passed: Mapping[str, Passed], bare: float) -> list[Goal]:
    """`bare`: the rate of the bare loop with default settings."""
    few, every = (passed[name].tuples / passed[name].seconds / bare for name in ("air", WHOLE))
    one, two = (passed[name].cpu / passed[name].tuples for name in OMITTING[1:])
    most = max(one.memory[1] for one in passed.values() if one.memory) / 1e6
    return [
        Goal("edge, omission: rate", few, "times the bare loop's", least=1.5),
        Goal("edge, every tuple that passes: rate", every, "times the bare loop's", least=0.9),
        Goal("edge: resident memory under load", most, "MB", most=120),
        Goal("two edges of a group: CPU a tuple", two / one, "times that of one edge", most=1.1),
    ]


def _row(what: str, passed: Passed, peers: tuple[float, float], count: int) -> dict[str, Cell]:
    """`peers`: the rates of the bare loop, with the default settings and with those of the edge."""
    speed = passed.tuples / passed.seconds
    share = f"{passed.published / count:.0%}"
    start, most = passed.memory or (None, None)
    return {
        "what": what,
        "tuples/s": round(speed),
        "rate / bare loop": round(speed / peers[0], 2),
        "rate / same settings": round(speed / peers[1], 2),
        "MB at start": start and round(start / 1e6),
        "MB under load": most and round(most / 1e6),
        "CPU µs a tuple": round(passed.cpu / passed.tuples * 1e6, 1),
        "published": share,
    }


def _readings(count: int, keys: int = KEYS) -> Iterator[tuple[bytes, bytes]]:
    # A day ago: event times may not lie ahead of the edge's clock.
    return weather(count, keys, (int(time.time()) - 86_400) * SECOND, seed=1)


def filled(topics: Topics, count: int, say: Say, source: str = SOURCE, keys: int = KEYS) -> Size:
    """Write readings to a source topic."""
    say(f"filling topic {source} with {count:,} readings of {keys:,} keys")
    size = 0

    def records() -> Iterator[tuple[str, bytes | None, bytes, int]]:
        nonlocal size
        for key, value in _readings(count, keys):
            size += len(value)
            yield source, key, value, -1

    topics.fill(records())
    return Size(count, size)


def bare_loop(topics: Topics, count: int, settings: Mapping[str, int] = MappingProxyType({})) -> Passed:
    """Consume, decode, publish: the least that anything between Kafka and Kafka must do. `settings`: others
    than the defaults of its consumer.
    """
    consumer = Consumer(
        {
            **topics.config,
            "group.id": "bare",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.assign([TopicPartition(SOURCE, number, 0) for number in range(PARTITIONS)])
    producer = Producer(
        {
            **topics.config,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
            "partitioner": "murmur2_random",
        }
    )
    passed, began, cpu, first = 0, 0.0, 0.0, 0
    while passed < count:
        for message in consumer.consume(BATCH, 0.02):
            value = message.value()
            if message.error() is not None or value is None:
                raise UnavailableError(f"the bare loop could not read: {message.error()}", where=SOURCE)
            key = orjson.dumps([orjson.loads(value)["station"]])
            while True:
                try:
                    producer.produce(BARE, value, key)
                    break
                except BufferError:
                    producer.poll(0.01)
            passed += 1
        producer.poll(0)
        if not first and passed >= WARM_UP * count:
            began, cpu, first = time.perf_counter(), time.process_time(), passed
    producer.flush()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    consumer.close()
    return Passed(passed - first, seconds, cpu, passed)


def _edge(fleet: Fleet, topics: Topics, name: str, size: Size) -> Passed:
    """Edges on the source topic for one of the streams."""
    config = CONFIG.format(batch=BATCH, topic=SOURCE, stream=name)
    cores = sorted(os.sched_getaffinity(0))
    pinned = {OMITTING[1]: cores[:1], OMITTING[2]: cores[:2]}.get(name, ())
    edge = EdgeRun(name, config, (stream_topic(name, 1),), pinned, _query(name))
    return edge_run(fleet, topics, edge, size)


def edge_run(fleet: Fleet, topics: Topics, edge: EdgeRun, size: Size) -> Passed:
    """Real processes of edges, watched through their metrics until they have read all of their source topics
    and the last tuple that they publish is in Kafka.
    """
    with running_edges(fleet, edge) as running:
        urls, processes = zip(*running, strict=True)
        if edge.sql:
            topics.until_shared(edge.name, len(running))
            fleet.apply(edge.sql)
        return _follow(urls, processes, topics, edge.topics, size)


@contextmanager
def running_edges(fleet: Fleet, edge: EdgeRun) -> Iterator[list[tuple[str, psutil.Process]]]:
    """The edges of a run while they run: the address of the metrics and the process of each."""
    directory = fleet.spec.directory
    config = directory / f"{edge.name}.yaml"
    config.write_text(edge.config)
    processes, urls = [], []
    names = [f"{edge.name}{number or ''}" for number in range(max(1, len(edge.cores)))]
    for name, port in zip(names, free_ports(len(names)), strict=True):
        (directory / name).mkdir()
        urls.append(f"http://127.0.0.1:{port}")
        processes.append(
            ServiceProcess(
                name,
                ["edge", "--name", name, "--config", str(config)],
                {
                    "TAMIS_KAFKA_BOOTSTRAP": fleet.bootstrap,
                    "TAMIS_DATA": str(directory / name),
                    "TAMIS_TELEMETRY_PORT": str(port),
                },
                directory / "logs" / f"{name}.log",
                f"{urls[-1]}/readyz",
            )
        )
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.wait_ready(READY_SECONDS)
        running = [psutil.Process(process.pid) for process in processes]
        for one, core in zip(running, edge.cores, strict=False):
            one.cpu_affinity([core])
        yield list(zip(urls, running, strict=True))
    finally:
        for process in processes:
            process.stop()


def _follow(
    urls: Sequence[str],
    processes: Sequence[psutil.Process],
    topics: Topics,
    names: Sequence[str],
    size: Size,
) -> Passed:
    """Watch until everything is decided and what is published is in Kafka."""
    seen: list[tuple[float, int]] = []  # time, records in the topics
    began, cpu, first, deadline = 0.0, 0.0, 0.0, time.monotonic() + PATIENCE
    start = most = _memory(processes)
    while True:
        if time.monotonic() > deadline:
            where = ", ".join(names)
            raise UnavailableError(f"the edge did not read everything within {PATIENCE:.0f} s", where=where)
        scrapes = [_scrape(url) for url in urls]

        def total(name: str, scrapes: Sequence[Scrape] = scrapes, **labels: str) -> float:
            return sum(scrape.total(name, **labels) for scrape in scrapes)

        most = max(most, _memory(processes))
        now, read = time.perf_counter(), total("tamis_edge_received_bytes_total") / size.bytes
        if not began and read >= WARM_UP:
            began, cpu, first = now, _cpu(processes), read
        if began:
            seen.append((time.perf_counter(), sum(map(topics.end, names))))
        decided = total("tamis_edge_tuples_total") + total("tamis_edge_held_tuples")
        published = int(sum(total("tamis_edge_tuples_total", decision=d) for d in ("published", "late")))
        if began and decided >= size.tuples and seen[-1][1] >= published:
            # The metrics are up to a second old: the topic itself says when its last tuple was there.
            ended = next(at for at, records in seen if records >= published) if published else now
            tuples, used = (1 - first) * size.tuples, _cpu(processes) - cpu
            return Passed(tuples, ended - began, used, published, (start, most))
        time.sleep(LOOK_SECONDS)


def _scrape(url: str) -> Scrape:
    try:
        return Scrape.of(url)
    except httpx.TransportError:
        return Scrape("")


def _memory(processes: Sequence[psutil.Process]) -> int:
    """Resident bytes of the largest process."""
    return max(process.memory_info().rss for process in processes)


def _cpu(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


def _stages(count: int) -> dict[str, Cell]:
    """The edge's own work without Kafka, stage by stage."""
    plan = _plan()
    air = plan.stream("air")
    assert air is not None
    values = [value for _, value in _readings(count)]
    parts = [values[start : start + BATCH] for start in range(0, len(values), BATCH)]
    now = time.time_ns() // 1000

    def decode() -> list[Decoded]:
        decoder = Decoder(air, FieldMap())
        return [decoder.payloads(part, now) for part in parts]

    decoded = decode()
    return {
        "decode and check": round(count / best(decode, 3)[0]),
        "predicate, omission, encode": round(count / best(lambda: _decide(plan, decoded), 3)[0]),
    }


def _decide(plan: Plan, decoded: Sequence[Decoded]) -> None:
    shard = ShardRun("air", "air", Commit(), plan)
    offset = 0
    for part in decoded:
        offsets = np.arange(offset, offset + len(part.times))
        offset += len(part.times)
        shard.take(Batch(part.columns, part.times, offsets, offsets), 0)
        # Kafka takes everything at once here, and each micro-batch is committed.
        while shard.out:
            shard.safe(shard.out.popleft().token)
        shard.commit()
        shard.committed(0)


def _plan() -> Plan:
    return first_plan(catalog_of(SQL + _query("air")), partitions=PARTITIONS, shards={"air": "air"})

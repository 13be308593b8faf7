"""The link and the speed of an edge that publishes partial aggregates of windows, beside every reading."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.edge import BARE, CONFIG, SOURCE, EdgeRun, Passed, Size, bare_loop, edge_run, filled
from benchmarks.edge_aggregates.ways import HOURS, KEYS, WAYS, Way
from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import RATE
from tamis.local.fleet import Fleet, FleetSpec
from tamis.messaging.topics import stream_topic

NAME = "edge_aggregates.link"
BATCH = 10_000


@dataclass(frozen=True)
class Sent:
    """Records of a topic, and the bytes of their keys and values."""

    records: int
    bytes: int


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count = 200_000 if quick else 3_000_000
    with tempfile.TemporaryDirectory(prefix="tamis-bench-aggregates-") as directory:
        fleet = Fleet(FleetSpec(Path(directory), (), partitions=PARTITIONS), say)
        try:
            fleet.start_registry()
            topics = Topics(fleet.bootstrap)
            topics.create([SOURCE, HOURS.source, BARE])
            size = filled(topics, count, say)
            say("bare loop")
            before = bare_loop(topics, count)
            passed, sent = {}, {}
            for way in WAYS:
                say(way.what)
                passed[way.stream] = _edge(fleet, topics, way, size)
                sent[way.stream] = _sent(topics, stream_topic(way.stream, 1))
            say("bare loop again")
            after = bare_loop(topics, count)
            say(HOURS.what)
            many = filled(topics, count // 2, say, HOURS.source, HOURS.keys)
            passed[HOURS.stream] = _edge(fleet, topics, HOURS, many)
            sent[HOURS.stream] = _sent(topics, stream_topic(HOURS.stream, 1))
            topics.close()
        finally:
            fleet.stop()
    bare = (before.tuples + after.tuples) / (before.seconds + after.seconds)
    rows: list[dict[str, Cell]] = [
        {"what": "bare loop", "readings/s": round(bare), "rate / bare loop": 1.0},
        *(_row(way, passed[way.stream], sent[way.stream], bare) for way in (*WAYS, HOURS)),
    ]
    return Result(
        NAME,
        "Edge, aggregates of windows",
        (
            "what",
            "readings/s",
            "rate / bare loop",
            "CPU µs a reading",
            "records",
            "bytes",
            "MB at start",
            "MB under load",
        ),
        rows,
        {"readings": count, "keys": KEYS, "readings a second and key": RATE, "quick": quick},
        (
            f"{count:,} readings of {KEYS:,} keys are {count // (KEYS * RATE)} seconds of event time",
            f"by hour: {count // 2:,} readings, whose groups are all in one open pane",
            "bare loop: consumes, decodes and publishes every reading, with default settings; the mean of"
            " two runs",
            "records, bytes: all that is in the topics in the end, with progress; keys and values, without"
            " compression and Kafka's own format",
        ),
        _goals(passed, sent, bare),
    )


def _edge(fleet: Fleet, topics: Topics, way: Way, size: Size) -> Passed:
    config = CONFIG.format(batch=BATCH, topic=way.source, stream=way.stream)
    return edge_run(
        fleet, topics, EdgeRun(way.stream, config, (stream_topic(way.stream, 1),), (), way.sql), size
    )


def _sent(topics: Topics, topic: str) -> Sent:
    """The records of a topic."""
    consumer = Consumer({**topics.config, "group.id": "counted", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left, size = topics.end(topic), 0
    records, deadline = left, time.monotonic() + 120
    while left and time.monotonic() < deadline:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None:
                left -= 1
                size += len(message.value() or b"") + len(message.key() or b"")
    consumer.close()
    return Sent(records, size)


def _row(way: Way, passed: Passed, sent: Sent, bare: float) -> dict[str, Cell]:
    speed = passed.tuples / passed.seconds
    start, most = passed.memory or (None, None)
    return {
        "what": way.what,
        "readings/s": round(speed),
        "rate / bare loop": round(speed / bare, 2),
        "CPU µs a reading": round(passed.cpu / passed.tuples * 1e6, 2),
        "records": sent.records,
        "bytes": sent.bytes,
        "MB at start": start and round(start / 1e6),
        "MB under load": most and round(most / 1e6),
    }


def _goals(passed: Mapping[str, Passed], sent: Mapping[str, Sent], bare: float) -> list[Goal]:
    fewer = {name: sent[f"raw_{name}"].bytes / sent[name].bytes for name in ("means", "several")}
    speed = passed["means"].tuples / passed["means"].seconds / bare
    memory = passed[HOURS.stream].memory
    assert memory is not None
    return [
        Goal("avg by minute: bytes", fewer["means"], "times fewer than every reading", least=100),
        Goal("5 aggregates, 3 windows: bytes", fewer["several"], "times fewer than every reading", least=50),
        Goal("partial aggregates: rate", speed, "times the bare loop's", least=2.5),
        Goal("10,000 groups, panes of an hour: memory", memory[1] / 1e6, "MB", most=200),
    ]

"""Raw readings of independent values through an edge and then through the joiner, each measured alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import orjson

from benchmarks.edge import EdgeRun, Size, edge_run
from benchmarks.harness import Cell, Say
from benchmarks.kafka import Topics
from benchmarks.readings import DEW_POINT, SECOND, station, stream
from benchmarks.spark_queries import Input, Joined, follow, joiner_process, resident
from tamis.local.fleet import Fleet
from tamis.messaging.records import canonical_key
from tamis.messaging.topics import stream_topic

KEYS = 1_000
# Readings of a key and stream in a second of event time. A combination spans at most 5 s on either side, so
# the omission interval is 10 s, and each key has 100 readings of a stream in it.
RATE = 10
RAW = ("raw.air", "raw.surface")
RETAINED = (stream_topic("air", 1), stream_topic("surface", 1))
EDGE_BATCH = 10_000

SQL = f"""{stream("air", KEYS, 2 * RATE)}{stream("surface", KEYS, 2 * RATE)}{DEW_POINT}
CREATE ALERT condensation WITH (gap = '1 minute') AS
SELECT a.station, a.ts, s.temp FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 0.5;
"""
CONFIG = f"""
batch: {{rows: {EDGE_BATCH}}}
sources:
  - {{kind: kafka, name: air, topic: {RAW[0]}, stream: air, group: air}}
  - {{kind: kafka, name: surface, topic: {RAW[1]}, stream: surface, group: surface}}
"""


# Topic, key, value, partition.
Record = tuple[str, bytes | None, bytes, int]


@dataclass(frozen=True)
class Cost:
    """Seconds and CPU seconds for a raw reading."""

    seconds: float
    cpu: float

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(self.seconds + other.seconds, self.cpu + other.cpu)

    @staticmethod
    def of(joined: Joined, share: float = 1.0) -> Cost:
        """Of a query that reads a share of the raw readings."""
        return Cost(joined.seconds * share / joined.rows, joined.cpu * share / joined.rows)


@dataclass(frozen=True)
class Passed:
    """Costs of the edge and of the joiner, the share of the readings that was retained, and the resident
    bytes of the joiner at its end.
    """

    edge: Cost
    joiner: Cost
    retained: float
    memory: int


def through_the_fleet(fleet: Fleet, topics: Topics, size: Size, batch: int, say: Say) -> Passed:
    """Let an edge read the raw readings that the topics have, then the joiner what the edge has published."""
    say("edge")
    edge = edge_run(fleet, topics, EdgeRun("edge", CONFIG, RETAINED), size)
    say(f"joiner: starting, {edge.published:,} retained tuples")
    given = Input(RETAINED, sum(map(topics.end, RETAINED)), batch)
    directory = fleet.spec.directory
    with joiner_process(fleet.bootstrap, directory, batch) as process:
        joined = follow(directory / "joiner/query", process, given, say)
        memory = resident(process)
    retained = edge.published / size.tuples
    cost = Cost(edge.seconds / edge.tuples, edge.cpu / edge.tuples)
    return Passed(cost, Cost.of(joined, retained), retained, memory)


def fill(topics: Topics, count: int, first: int = 0) -> Size:
    """Write raw readings to the topics of the edge, from the `first` one on."""
    size = 0

    def records() -> Iterator[Record]:
        nonlocal size
        for record in readings(count, RAW, first):
            size += len(record[2])
            yield record

    topics.fill(records())
    return Size(count, size)


def readings(count: int, topics: tuple[str, str], first: int = 0) -> Iterator[Record]:
    """Readings of both streams in turn, in the order of time from yesterday on, each key at an even rate. At
    100 % humidity the dew point is the temperature, and one of about 4,000 combinations is above the
    threshold.
    """
    random = np.random.default_rng(3 + first)
    start = (int(time.time()) // 86_400 - 1) * 86_400 * SECOND
    names = [station(number) for number in range(KEYS)]
    keys = [canonical_key((name,)) for name in names]
    step = SECOND // (2 * RATE * KEYS)
    values = [random.uniform(least, least + 40, -(-count // 2)).round(4).tolist() for least in (-20.0, 18.6)]
    for number in range(count):
        side, key = number % 2, number // 2 % KEYS
        value: dict[str, Cell] = {
            "station": names[key],
            "ts": start + (first + number) * step,
            "temp": values[side][number // 2],
            "rh": 100.0,
        }
        yield topics[side], keys[key], orjson.dumps(value), -1

"""Reckoning of a large installation from unit costs: cores, memory, traffic and disk, and what breaks first.

The unit costs are those of `tamis size`, and three that are measured here. Nothing here starts a service.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
from tests.fixtures.dict_state import DictState
from tests.stream_records import progress_record

from benchmarks.harness import Cell, Result, Say
from tamis.messaging.topics import PLANS, stream_topic
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.plan.parts import joined, parts
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.sizing.figures import unit_costs
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans
from tamis_registry.kafka.store import COMPRESSION

NAME = "scale.reckoned"
SECOND = 1_000_000
DAY = 86_400
MB, GB, TB = 1e6, 1e9, 1e12
# Seconds between two progress records of a shard in a partition, with the greatest `progress.every`.
RARE = 20.0
COLUMNS = (
    "what",
    "an edge a machine",
    "an edge a machine, progress every 20 s",
    "an edge for 100 machines",
    "everything shipped",
)

PARTS_PACKED = "the same parts compressed, as in Kafka, MB"

# CPU time of a row in Spark's own stream-stream join: docs/benchmarks/fleet.md, benchmark joiner.
SPARK_US = 69.7
# A reading of two or three columns, as JSON in a record.
RECORD = 120
REPLICAS = 3
# Half of each core is left for catching up, as in `tamis size`.
BUSY = 0.5
# What a broker takes, in bytes and in batches a second, of which each is a request of one shard.
BROKER_BYTES, BROKER_BATCHES = 100 * MB, 50_000.0

STREAM = (
    "CREATE STREAM {name} (station VARCHAR KEY, ts TIMESTAMP NOT NULL, v DOUBLE NOT NULL CHECK (v BETWEEN"
    " -100 AND 200), WATERMARK FOR ts AS ts - INTERVAL '1 second') WITH (keys = 1000, rate = '1/s');"
)
ALERT = (
    "CREATE ALERT q{number} AS SELECT a.station, a.ts FROM a JOIN b ON a.station = b.station AND b.ts BETWEEN"
    " a.ts - INTERVAL '5 seconds' AND a.ts + INTERVAL '5 seconds' WHERE a.v - b.v > {number};"
)


@dataclass(frozen=True)
class Installation:
    """Size and load of an installation. `rate`: readings a second of all machines; `retained`: the share that
    edges publish; `streams`: streams with alerts of each edge, each a shard; `span`: seconds for which a
    tuple is kept; `progress`: progress records a second of a shard in a partition.
    """

    edges: int = 100_000
    rate: float = 1e7
    retained: float = 0.1
    streams: int = 2
    queries: int = 10_000
    span: float = 20.0
    progress: float = unit_costs()["progress_records_per_second"]


@dataclass(frozen=True)
class PlanCosts:
    """Bytes for a listed shard and for an alert, microseconds to read a thousand bytes, and the share of the
    bytes that is left when they are compressed.
    """

    shard_bytes: float
    alert_bytes: float
    read_us_per_kb: float
    packed: float


@dataclass(frozen=True)
class Measured:
    """Unit costs measured here: microseconds of a joiner's task and bytes of a progress record; the costs
    of a whole plan, which the joiner and the alerts service read, and of the parts of both streams, which an
    edge reads.
    """

    progress_us: float
    progress_bytes: float
    whole: PlanCosts
    parts: PlanCosts


def run(quick: bool, say: Say) -> Result:
    """Reckon the installation of docs/scale.md."""
    say("unit costs of progress records and plans")
    measured = measure(*((200, 11) if quick else (10_000, 101)))
    machine = Installation()
    rarely, site = replace(machine, progress=1 / RARE), replace(machine, edges=1_000)
    columns = [*(tamis(one, measured) for one in (machine, rarely, site)), shipped(machine)]
    rows: list[dict[str, Cell]] = []
    for name in columns[0]:
        cells = (name, *(column.get(name) for column in columns))
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return Result(
        NAME,
        f"{machine.rate:,.0f} readings/s of {machine.edges:,} machines, {machine.queries:,} alerts",
        COLUMNS,
        rows,
        {"edges": machine.edges, "rate": machine.rate, "queries": machine.queries, "quick": quick},
        (
            f"{machine.retained:.0%} of the readings are retained, records have {RECORD} bytes; each edge has"
            f" {machine.streams} shards; a tuple is kept for {machine.span:.0f} s",
            f"a progress record takes {measured.progress_us:.2g} µs of a joiner's task and"
            f" {measured.progress_bytes:.0f} bytes",
            f"a whole plan takes {_said(measured.whole)}",
            f"the parts of both streams take {_said(measured.parts)}",
            f"half of each core is left free; {REPLICAS} replicas; topics keep a day",
            "everything shipped: each reading goes to Kafka, and Spark's own stream-stream join reads them",
        ),
    )


def tamis(one: Installation, measured: Measured) -> dict[str, float]:
    """The needs of an installation of Tamis, by quantity."""
    costs = unit_costs()
    shards = one.edges * one.streams
    published = one.rate * one.retained
    tuple_cores = published * costs["joiner_cpu_us_per_tuple"] / 1e6 / BUSY
    partitions = 2 * math.ceil(tuple_cores)
    progress = shards * partitions * one.progress
    overhead = costs["kafka_batch_overhead_bytes"] + costs["kafka_record_overhead_bytes"]
    data = published * (RECORD + costs["kafka_record_overhead_bytes"])
    progress_bytes = progress * (measured.progress_bytes + overhead)
    # A frontier is late by the time between two progress records.
    state = published * (one.span + 1 / one.progress)
    state_bytes = costs["joiner_state_bytes_per_tuple"] + costs["joiner_state_bytes_per_column"]
    whole, part = (
        shards * costs_of.shard_bytes + one.queries * costs_of.alert_bytes
        for costs_of in (measured.whole, measured.parts)
    )
    return {
        "cores of all edges": one.rate * costs["edge_cpu_us_per_reading"] / 1e6 / BUSY,
        "memory of all edges, GB": one.edges * costs["edge_memory_mb"] / 1e3,
        "tuples/s to Kafka": published,
        "bytes of tuples to Kafka, MB/s": data / MB,
        "partitions": partitions,
        "progress records/s": progress,
        "bytes of progress, MB/s": progress_bytes / MB,
        "brokers for bytes": math.ceil((data + progress_bytes) * REPLICAS / BROKER_BYTES),
        "brokers for batches": math.ceil(progress / BROKER_BATCHES),
        "disk of Kafka, TB": (data + progress_bytes) * DAY * REPLICAS / TB,
        "cores of the joiner for tuples": tuple_cores,
        "cores of the joiner for progress": progress * measured.progress_us / 1e6 / BUSY,
        "tuples in the joiner's state": state,
        "memory of the joiner's state, GB": state * state_bytes * costs["joiner_memory_per_state_byte"] / GB,
        "plan, read by the joiner, MB": whole / MB,
        "the same compressed, as in Kafka, MB": whole * measured.whole.packed / MB,
        "seconds to read a plan for the first time": whole / 1e3 * measured.whole.read_us_per_kb / 1e6,
        "parts of a plan, read by each edge, MB": part / MB,
        PARTS_PACKED: part * measured.parts.packed / MB,
        "seconds to read the parts for the first time": part / 1e3 * measured.parts.read_us_per_kb / 1e6,
    }


def shipped(one: Installation) -> dict[str, float]:
    """The needs if each reading goes to Kafka, and Spark's own join reads them."""
    costs = unit_costs()
    data = one.rate * (RECORD + costs["kafka_record_overhead_bytes"])
    cores = one.rate * SPARK_US / 1e6 / BUSY
    return {
        "tuples/s to Kafka": one.rate,
        "bytes of tuples to Kafka, MB/s": data / MB,
        "partitions": 2 * math.ceil(cores),
        "brokers for bytes": math.ceil(data * REPLICAS / BROKER_BYTES),
        "disk of Kafka, TB": data * DAY * REPLICAS / TB,
        "cores of the joiner for tuples": cores,
        "tuples in the joiner's state": one.rate * one.span,
    }


@cache
def measure(shards: int, alerts: int) -> Measured:
    """Measure what progress records and plans cost, with these numbers of shards and alerts."""
    progress = _progress(_plan(shards, 1), shards)
    return Measured(*progress, _costs(shards, alerts, lambda plan: [plan]), _costs(shards, alerts, _parts))


def _costs(shards: int, alerts: int, texts: Callable[[bytes], list[bytes]]) -> PlanCosts:
    """The costs of the texts that somebody reads of a plan."""

    def made(shards: int, alerts: int, first: int = 0) -> list[bytes]:
        return texts(encode_plan(_plan(shards, alerts, first)))

    def size(found: list[bytes]) -> int:
        return sum(map(len, found))

    few, whole = size(made(1, 1)), made(shards, alerts)
    # Each of other alerts, since parts that were read before are kept.
    others = [made(1, alerts, first=number) for number in (101, 198)]
    began = time.process_time()
    for found in others:
        decode_plan(found[0] if len(found) == 1 else joined({str(at): text for at, text in enumerate(found)}))
    read = (time.process_time() - began) * 1e6 / (sum(map(size, others)) / 1e3)
    packed = [pa.compress(text, codec=COMPRESSION, asbytes=True) for text in whole]
    return PlanCosts(
        (size(made(shards, 1)) - few) / (shards - 1),
        (size(made(1, alerts)) - few) / (alerts - 1),
        read,
        size(packed) / size(whole),
    )


def _parts(plan: bytes) -> list[bytes]:
    return list(parts(plan).values())


def _said(costs: PlanCosts) -> str:
    return (
        f"{costs.shard_bytes:.0f} bytes a shard, {costs.alert_bytes:.0f} an alert, and"
        f" {costs.read_us_per_kb:.2g} µs to read a thousand bytes"
    )


def _plan(shards: int, alerts: int, first: int = 0) -> Plan:
    sql = "".join(STREAM.format(name=name) for name in "ab")
    sql += "".join(ALERT.format(number=number) for number in range(first, first + alerts))
    return first_plan(catalog_of(sql), shards={_shard(number): _stream(number) for number in range(shards)})


def _shard(number: int) -> str:
    return f"{_stream(number)}:site-{number // 2:06}/http"


def _stream(number: int) -> str:
    return "ab"[number % 2]


def _progress(plan: Plan, shards: int) -> tuple[float, float]:
    """CPU microseconds and bytes of a progress record; each shard sends one in each of some batches."""
    state, group = DictState(), Group.load(0, 1, DictState())
    spent, records, size = 0.0, 0, 0
    for number in range(5):
        taken = [_records(PLANS, [encode_plan(plan)], 0)] if number == 0 else []
        for at, stream in enumerate("ab"):
            values = [progress_record(_shard(one), 1, 0, number * SECOND) for one in range(at, shards, 2)]
            taken.append(_records(stream_topic(stream, 1), values, number))
            if number:
                records, size = records + len(values), size + sum(map(len, values))
        began = time.process_time()
        group = Group.load(0, 1, state, group)
        group.process(*split_plans(taken), state, now=number, token=str(number))
        if number:
            spent += time.process_time() - began
    return spent * 1e6 / records, size / records


def _records(topic: str, values: list[bytes], number: int) -> Records:
    rows = np.arange(len(values))
    return Records(topic, 0, values, rows, np.full(len(values), number))

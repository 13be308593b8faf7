"""Reckoning of a large installation from unit costs: cores, memory, traffic and disk, and what breaks first.

The unit costs are those of `tamis size`, and three that are measured here. Nothing here starts a service.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa

from benchmarks.harness import Cell, Result, Say
from tamis.messaging.records import progress_record
from tamis.messaging.topics import PLANS, stream_topic
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.sizing.unit_costs import unit_costs
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.kafka_records import Records, split_plans
from tamis_joiner.core.state.state_map import DictState
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

# CPU time of a row in Spark's own stream-stream join: docs/benchmarks/fleet.md, benchmark joiner.
SPARK_US = 89.1
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
class Measured:
    """Unit costs measured here: microseconds of a joiner's task and bytes of a progress record; bytes of a
    plan for a listed shard and for an alert, microseconds to read a thousand bytes of it, and the share of
    its bytes that is left when they are compressed.
    """

    progress_us: float
    progress_bytes: float
    shard_bytes: float
    alert_bytes: float
    read_us_per_kb: float
    packed: float


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
            f" {measured.progress_bytes:.0f} bytes; a plan takes {measured.shard_bytes:.0f} bytes a shard,"
            f" {measured.alert_bytes:.0f} an alert, and {measured.read_us_per_kb:.2g} µs to read a"
            " thousand bytes",
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
    plan = shards * measured.shard_bytes + one.queries * measured.alert_bytes
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
        "bytes of a plan, MB": plan / MB,
        "the same compressed, as in Kafka, MB": plan * measured.packed / MB,
        "seconds to read a plan for the first time": plan / 1e3 * measured.read_us_per_kb / 1e6,
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
    few, many = _plan(1, 1), _plan(shards, 1)
    shard_bytes = (len(encode_plan(many)) - len(encode_plan(few))) / (shards - 1)
    alert_bytes = (len(encode_plan(_plan(1, alerts))) - len(encode_plan(few))) / (alerts - 1)
    # Each of other alerts, since parts that were read before are kept.
    others = [encode_plan(_plan(1, alerts, first=number)) for number in (101, 198)]
    began = time.process_time()
    for encoded in others:
        decode_plan(encoded)
    read = (time.process_time() - began) * 1e6 / (sum(map(len, others)) / 1e3)
    progress_us, progress_bytes = _progress(many, shards)
    whole = encode_plan(_plan(shards, alerts))
    packed = len(pa.compress(whole, codec=COMPRESSION, asbytes=True)) / len(whole)
    return Measured(progress_us, progress_bytes, shard_bytes, alert_bytes, read, packed)


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

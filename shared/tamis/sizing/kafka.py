"""Figures of Kafka: partitions, and traffic and disk of topics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tamis.messaging.topics import DAY_MS
from tamis.plan.model import StreamPlan, TopicPlan
from tamis.sizing.figures import Figure, weakest
from tamis.sizing.fleet import Fleet, Part
from tamis.sizing.load import SECOND
from tamis.sizing.records import progress_bytes, tuple_bytes, unfiltered_bytes

# A fleet can grow to twice its cores before its partition count limits it, which can't be changed later.
GROWTH = 2
FEWEST_PARTITIONS = 4  # the default of TAMIS_PARTITIONS
# An edge publishes a micro-batch after this time: the default of `batch.wait`.
EDGE_WAIT_SECONDS = 0.02


def recommended_partitions(fleet: Fleet, cores: Figure) -> Figure:
    """The partition count of the fleet."""
    if fleet.operation.partitions is not None:
        return Figure(fleet.operation.partitions, "count", "given", "--partitions")
    wanted = max(FEWEST_PARTITIONS, 2 * math.ceil(cores.value * GROWTH / 2))
    return Figure(
        wanted,
        "count",
        cores.basis,
        f"{GROWTH} x cores of the joiner, at least {FEWEST_PARTITIONS}; can't be changed later",
    )


def topic_figures(fleet: Fleet, stream: StreamPlan, topic: TopicPlan, partitions: int) -> dict[str, Figure]:
    """Traffic and disk of a topic, beside those without Tamis."""
    load, costs = fleet.loads[stream.name], fleet.costs
    published, size = fleet.published[topic.name], tuple_bytes(load, stream, topic, 1)
    writers = fleet.operation.edges * partitions
    extra = overhead(fleet, published.value, writers / EDGE_WAIT_SECONDS)
    # Each edge is a shard of the stream. A progress record is a batch of its own.
    progress = (
        writers * costs["progress_records_per_second"]
        * (progress_bytes(stream, topic, 1) + overhead(fleet, 1.0, 1.0))
    )  # fmt: skip
    traffic = Figure(
        published.value * (size.value + extra) + progress,
        "B/s",
        weakest(published, size),
        "published x (record + measured overhead) + progress",
    )
    whole = unfiltered_bytes(load, stream)
    raw = Figure(
        load.rate.value * (whole.value + extra),
        "B/s",
        weakest(load.rate, whole),
        "the same, if every reading were published",
    )
    kept = fleet.operation.retention or DAY_MS * 1_000
    return {
        "retained": fleet.shares[topic.name],
        "published": published,
        "record": size,
        "traffic": traffic,
        "traffic without Tamis": raw,
        "disk": stored(fleet, traffic, kept),
        "disk without Tamis": stored(fleet, raw, kept),
    }


def overhead(fleet: Fleet, rate: float, batches: float) -> float:
    """The bytes of a record in a log beyond key and value, if at most so many batches a second are
    written.
    """
    shared = min(1.0, batches / rate) if rate else 1.0
    return fleet.costs["kafka_record_overhead_bytes"] + shared * fleet.costs["kafka_batch_overhead_bytes"]


def stored(fleet: Fleet, traffic: Figure, kept: int) -> Figure:
    """The disk of all replicas of a topic. `kept`: retention in microseconds."""
    replicas = fleet.operation.replication
    basis = "assumed" if fleet.basis_of("replication") == "assumed" else weakest(traffic)
    source = f"traffic x {kept / SECOND / 86_400:g} d x {replicas} replicas"
    return Figure(traffic.value * kept / SECOND * replicas, "B", basis, source)


def kafka_figures(fleet: Fleet, topics: Sequence[Part]) -> dict[str, Figure]:
    """Replication, traffic and disk of all topics together."""
    replicas = fleet.operation.replication
    traffic = [part.figures["traffic"] for part in topics]
    disk = [part.figures["disk"] for part in topics]
    total = sum(one.value for one in traffic)
    return {
        "replication": Figure(
            replicas,
            "count",
            fleet.basis_of("replication"),
            "--replication; the brokers' default.replication.factor",
        ),
        "write traffic": Figure(
            total * replicas, "B/s", weakest(*traffic), "traffic of all topics x replicas"
        ),
        "read traffic": Figure(total, "B/s", weakest(*traffic), "joiner and alerts read each topic once"),
        "disk": Figure(
            sum(one.value for one in disk),
            "B",
            weakest(*disk),
            "all topics; the compacted ones are small",
        ),
    }

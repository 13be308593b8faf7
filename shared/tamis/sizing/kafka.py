"""Figures of Kafka: partitions, and traffic and disk of topics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tamis.messaging.topics import DAY_MS
from tamis.operators.time_join.replay import replay
from tamis.plan.model import Definition, StreamPlan, TopicPlan
from tamis.plan.nodes import Groups
from tamis.sizing.figures import Figure, weakest
from tamis.sizing.fleet import BUSY, Fleet, Part
from tamis.sizing.load import SECOND
from tamis.sizing.records import alarm_bytes, progress_bytes, unfiltered_bytes

# A fleet can grow to twice its cores before its partition count limits it, which can't be changed later.
GROWTH = 2
FEWEST_PARTITIONS = 4  # the default of TAMIS_PARTITIONS
# An edge publishes a micro-batch after this time: the default of `batch.wait`.
EDGE_WAIT_SECONDS = 0.02

# Of a million published tuples so many alarms, where nothing says more.
ALARM_SHARE = 1e-3
# A batch of the joiner takes so long at least.
BATCH_SECONDS = 0.2


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
    published, size = fleet.published[topic.name], fleet.record(stream, topic)
    writers = fleet.operation.edges * partitions
    extra = alone = overhead(fleet, published.value, writers / EDGE_WAIT_SECONDS)
    partial = fleet.partials.get(topic.name)
    if partial is not None:
        # Rows share the records of cuts, each of which is a batch of its own.
        records = partial.records(fleet.operation.edges, partitions if topic.partition_key else 1)
        each = partial.frame + overhead(fleet, 1.0, 1.0)
        extra = records * each / published.value if published.value else 0.0
        alone = overhead(fleet, load.rate.value, writers / EDGE_WAIT_SECONDS)
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
        load.rate.value * (whole.value + alone),
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


def alarm_figures(fleet: Fleet) -> dict[str, Figure]:
    """Alarms a second, and their topic."""
    rate = _alarm_rate(fleet)
    sizes = [alarm_bytes(one, fleet.loads) for one in fleet.queries]
    size = max(sizes, key=lambda one: one.value)
    each = size.value + overhead(fleet, rate.value, 1 / BATCH_SECONDS)
    traffic = Figure(rate.value * each, "B/s", weakest(rate, size), "alarms x bytes of an alarm")
    kept = 7 * DAY_MS * 1_000
    return {"alarms": rate, "record": size, "traffic": traffic, "disk": stored(fleet, traffic, kept)}


def alerts_figures(fleet: Fleet) -> dict[str, Figure]:
    """Cores and memory of the alerts service."""
    rate = _alarm_rate(fleet)
    cpu = rate.value * fleet.costs["alerts_cpu_us_per_alarm"] / 1e6
    return {
        "cores": Figure(
            cpu / BUSY, "cores", weakest(rate), f"alarms x measured CPU time, {1 - BUSY:.0%} left free"
        ),
        "memory": fleet.memory("alerts"),
    }


def _alarm_rate(fleet: Fleet) -> Figure:
    """Alarms of all alerts a second."""
    if not fleet.queries:
        return Figure(0.0, "alarms/s", "computed", "there is no alert")
    if fleet.operation.alarms is not None:
        rate = fleet.operation.alarms
        return Figure(rate.count * SECOND / rate.per, "alarms/s", "given", "--alarms")
    measured = [_replayed(fleet, one) for one in fleet.plan.definitions]
    if measured and not fleet.plan.standing and all(one is not None for one in measured):
        total = sum(one for one in measured if one is not None)
        return Figure(total, "alarms/s", "measured", "alarms of the recordings")
    published = sum(one.value for one in fleet.published.values())
    source = f"one alarm for {1 / ALARM_SHARE:.0f} published tuples"
    grouped = [one for one in fleet.plan.standing if isinstance(one.node, Groups)]
    rows = sum(fleet.published[source.topic].value for one in grouped for source in one.inputs)
    if grouped:
        source += ", and one for each tuple of groups without windows"
    return Figure(published * ALARM_SHARE + rows, "alarms/s", "assumed", source)


def _replayed(fleet: Fleet, definition: Definition) -> float | None:
    """The alarms a second that the recordings raise; None if a stream has no recording."""
    recordings = {}
    for one in definition.inputs:
        recording = fleet.loads[one.stream].recording
        if recording is None or not len(recording):
            return None
        recordings[one.stream] = recording
    times = [recordings[one.stream].columns[one.time].data for one in definition.inputs]
    span = (max(int(one.max()) for one in times) - min(int(one.min()) for one in times)) / SECOND
    scale = max(
        fleet.loads[name].rate.value * span / len(recording) for name, recording in recordings.items()
    )
    return len(replay(definition, fleet.plan.streams, recordings)) * scale / span if span else None

"""Figures of the joiner: state of topics and queries, cores, memory and checkpoint."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tamis.messaging.topics import JOINER_PATTERN
from tamis.plan.model import StandingQuery, StreamPlan, TopicPlan
from tamis.sizing.figures import Figure, weakest
from tamis.sizing.fleet import BUSY, MB, Fleet, Part
from tamis.sizing.load import SECOND, most, readers, span

# RocksDB keeps old versions until it compacts, and Spark the changes of the last batches.
CHECKPOINT_COPIES = 5
# Of a batch with this many tuples a core, four fifths of the time are for the tuples: docs/scale.md.
BATCH_PER_CORE = 100_000


def state_figures(fleet: Fleet, stream: StreamPlan, topic: TopicPlan) -> dict[str, Figure]:
    """The live tuples of a topic, and the bytes of their state."""
    load = fleet.loads[stream.name]
    share, costs = fleet.shares[topic.name], fleet.costs
    bytes_ = costs["joiner_state_bytes_per_tuple"]
    bytes_ += costs["joiner_state_bytes_per_column"] * len(topic.columns)
    found: dict[str, Figure] = {}
    bounds = [most(fleet.plan, source, one) for one, source in readers(fleet.plan, topic)]
    proven = [bound for bound in bounds if bound is not None]
    if load.proven and len(proven) == len(bounds):
        found["bound"] = Figure(max(proven), "tuples", "proven", "tamis explain: keys x rate x span")
    else:
        fleet.notes.append(f"{topic.name}: its state has no proven number; tamis explain says why")
        if any(source.kept is None for _, source in readers(fleet.plans.stalled, topic)):
            return found  # also with a number of keys nothing bounds it, and 0 would be wrong
    stall = load.stream.max_stall / SECOND
    for name, kept, why in (
        ("tuples", span(fleet.plans.calm, topic), "all sources send"),
        (
            "tuples in a stall",
            span(fleet.plans.stalled, topic),
            f"a partner is silent for max_stall ({stall:.0f} s)",
        ),
    ):
        count = load.rate.value * share.value * kept / SECOND
        if "bound" in found:
            count = min(count, found["bound"].value)
        found[name] = Figure(count, "tuples", weakest(load.rate, share), f"published x span, while {why}")
    found["state"] = Figure(
        found["tuples in a stall"].value * bytes_,
        "B",
        found["tuples in a stall"].basis,
        "tuples in a stall x measured bytes",
    )
    return found


def synopsis_figures(fleet: Fleet, query: StandingQuery) -> dict[str, Figure]:
    """The entries of a query that counts, and the bytes of their state."""
    if query.bound is None:
        fleet.notes.append(f"query {query.alert}: its memory has no proven number, and isn't counted")
        return {}
    bytes_ = query.bound * fleet.costs["synopsis_bytes_per_entry"]
    return {
        "bound": Figure(query.bound, "entries", "proven", "tamis explain"),
        "state": Figure(bytes_, "B", "computed", "bound x measured bytes"),
    }


def joiner_cores(fleet: Fleet) -> Figure:
    """The cores that the joiner needs."""
    read = {topic.name for topic in _read_by_joiner(fleet)}
    cpu = sum(fleet.published[name].value for name in read) * fleet.costs["joiner_cpu_us_per_tuple"] / 1e6
    return Figure(
        max(1, math.ceil(cpu / BUSY)), "cores", weakest(*fleet.published.values()),
        f"published tuples{' and rows' if fleet.partials else ''} x measured CPU time of a tuple,"
        f" {1 - BUSY:.0%} left free",
    )  # fmt: skip


def joiner_figures(fleet: Fleet, cores: Figure, states: Sequence[Part]) -> dict[str, Figure]:
    """Cores, memory and checkpoint of the joiner. `states`: the parts with its state."""
    costs = fleet.costs
    sizes = [part.figures["state"] for part in states if "state" in part.figures]
    state = sum(one.value for one in sizes)
    basis = weakest(*sizes) if sizes else "computed"
    workers = (
        cores.value * costs["joiner_worker_memory_mb"] * MB + state * costs["joiner_memory_per_state_byte"]
    )
    return {
        "cores": cores,
        "driver memory": Figure(
            costs["joiner_driver_memory_mb"] * MB,
            "B",
            "measured",
            "driver and JVM at rest, TAMIS_JOINER_MEMORY=2g",
        ),
        "worker memory": Figure(workers, "B", basis, "measured: Python workers + state in a stall"),
        "batch": Figure(
            cores.value * BATCH_PER_CORE,
            "tuples",
            cores.basis,
            f"{BATCH_PER_CORE:,} a core, for TAMIS_JOINER_BATCH",
        ),
        "checkpoint": Figure(
            state * CHECKPOINT_COPIES, "B", "assumed", f"state in a stall x {CHECKPOINT_COPIES} copies"
        ),
    }


def _read_by_joiner(fleet: Fleet) -> list[TopicPlan]:
    """The topics without those that only readers outside the fleet use."""
    return [one for _, one in fleet.topics if re.fullmatch(JOINER_PATTERN, one.name)]

"""Figures of streams and edges."""

from __future__ import annotations

from tamis.declarations.watches import pattern_watches, window_functions
from tamis.plan.model import StreamPlan, TopicPlan
from tamis.sizing.figures import Figure, weakest
from tamis.sizing.fleet import BUSY, MB, Fleet, product
from tamis.sizing.load import SECOND, StreamLoad, longest_wait
from tamis.sizing.records import reading_bytes
from tamis.watching.key_history import bytes_per_key
from tamis.watching.series_watcher import SeriesWatcher

# Seconds after which the edge has committed a reading that is decided.
COMMIT_SECONDS = 1.0


def stream_figures(load: StreamLoad) -> dict[str, Figure]:
    """Readings, keys and traffic of a stream at its sources."""
    found = {"readings": load.rate}
    if load.keys is not None:
        found["keys"] = load.keys
    size = reading_bytes(load)
    return found | {
        "reading": size,
        "traffic": product("B/s", "rate x bytes of a reading", load.rate, size),
    }


def edge_figures(fleet: Fleet) -> dict[str, Figure]:
    """Memory, cores and disk of each edge."""
    edges, costs = fleet.operation.edges, fleet.costs
    used = fleet.sources
    rate = sum(load.rate.value for load in used.values()) / edges
    basis = weakest(*(load.rate for load in used.values()))
    held = [(topic, _held(fleet, stream, topic) / edges) for stream, topic in fleet.topics]
    keys = sum((load.keys.value if load.keys else 0.0) for load in used.values()) / edges
    open_panes = sum(one.memory for one in fleet.partials.values())
    memory = (
        costs["edge_memory_mb"] * MB
        + keys * costs["edge_memory_bytes_per_key"]
        + sum(_watched_bytes(fleet, name) for name in used) / edges
        + sum(count for _, count in held) * costs["edge_memory_bytes_per_held_tuple"]
        + open_panes
    )
    journal = sum(
        load.rate.value
        / edges
        * (reading_bytes(load).value + costs["journal_overhead_bytes"])
        * (_wait(fleet, name) + COMMIT_SECONDS)
        for name, load in used.items()
    )
    outage = fleet.operation.outage / SECOND
    spool = sum(
        fleet.published[topic.name].value
        / edges
        * (fleet.record(stream, topic).value + costs["spool_overhead_bytes"])
        * outage
        for stream, topic in fleet.topics
    )
    records = weakest(*(reading_bytes(load) for load in used.values()), *fleet.shares.values())
    what = fleet.basis_of("outage")
    cpu = rate * costs["edge_cpu_us_per_reading"] / 1e6
    return {
        "edges": Figure(edges, "count", fleet.basis_of("edges"), "--edges"),
        "readings each": Figure(rate, "tuples/s", basis, "rates / edges, evenly distributed"),
        "cores": Figure(
            cpu / BUSY, "cores", basis, f"readings x measured CPU time, {1 - BUSY:.0%} left free"
        ),
        "held tuples": Figure(
            sum(count for _, count in held),
            "tuples",
            "computed",
            "rate x longest wait, the most that omission holds",
        ),
        **(
            {"open panes": Figure(open_panes, "B", "computed", "open rows of partial aggregates, for memory")}
            if fleet.partials
            else {}
        ),
        "memory": Figure(
            memory,
            "B",
            basis,
            f"measured: the service + keys + held tuples{' + open panes' if fleet.partials else ''}",
        ),
        "journal": Figure(
            journal, "B", records, "readings over HTTP and MQTT x longest wait, measured overhead"
        ),
        "spool": Figure(
            spool,
            "B",
            "assumed" if what == "assumed" else records,
            f"retained tuples x outage of {outage:.0f} s, measured overhead",
        ),
    }


def _watched_bytes(fleet: Fleet, base: str) -> float:
    """The memory of the readings that edges keep for patterns and window functions, of all keys."""
    watches = [watch for one in fleet.plan.streams if one.shards_of == base for watch in one.all_watches]
    if not watches:
        return 0
    load = fleet.sources[base]
    keys = load.keys.value if load.keys else 1.0
    patterns, functions = pattern_watches(watches), window_functions(watches)
    for some, what in ((patterns, "comparing readings with patterns"), (functions, "window functions")):
        if some:
            fleet.notes.append(f"stream {base}: the time for {what} is not part of the edge's cores")
    # Another reading at one end of the span.
    history = bytes_per_key(functions, lambda span: load.rate.value / keys * span / SECOND + 1)
    assert history is not None
    return (SeriesWatcher(patterns).bytes_per_key + history) * keys


def _held(fleet: Fleet, stream: StreamPlan, topic: TopicPlan) -> float:
    """The most tuples of a topic that omission holds at a time."""
    return fleet.loads[stream.name].rate.value * longest_wait(topic)


def _wait(fleet: Fleet, stream: str) -> float:
    """The longest time in seconds until a reading of a stream is decided, or sent in partial aggregates."""
    topics = [topic for one, topic in fleet.topics if one.shards_of == stream]
    partial = [fleet.partials[topic.name].wait for topic in topics if topic.name in fleet.partials]
    if partial:
        fleet.notes.append(
            f"stream {stream}: after a restart, edges read again up to {max(partial):.0f} s of readings for"
            " partial aggregates: its Kafka topics must keep them, besides outages"
        )
    return max([*map(longest_wait, topics), *partial], default=0.0)

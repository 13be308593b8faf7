"""The registry's state as metrics."""

from __future__ import annotations

from collections import Counter

from tamis.telemetry import Metrics, get_logger
from tamis_registry.core.declared_keys import excesses, key_counts
from tamis_registry.core.link_bounds import topic_bounds
from tamis_registry.core.shards.backfill import history
from tamis_registry.core.status import View, alert_state

log = get_logger("registry")

REPLACED = (
    "tamis_registry_keys",
    "tamis_registry_declared_keys",
    "tamis_registry_partial_bound_records",
    "tamis_registry_partial_bound_rows",
    "tamis_registry_shards",
    "tamis_registry_queries",
    "tamis_registry_unproven_streams",
    "tamis_registry_unproven_queries",
    "tamis_registry_topics",
    "tamis_registry_leases",
    "tamis_registry_history_start_seconds",
)


def show(view: View, metrics: Metrics) -> None:
    """Set every gauge, and remove the gauges of streams and queries that no longer exist."""
    with metrics.replacing(*REPLACED):
        _set(view, metrics)


class KeyWarnings:
    """Warns of each stream with more keys than it declares, once until it has no more."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def show(self, view: View) -> None:
        """Warn of the streams that were not known before."""
        found = excesses(view)
        for stream in found.keys() - self._known:
            log.warning("a stream has more keys than it declares", stream=stream, reason=found[stream])
        self._known = set(found)


def _set(view: View, metrics: Metrics) -> None:
    shards: Counter[tuple[str, str]] = Counter()
    for of_stream, states in view.shard_states.items():
        for shard_state, _ in states:
            shards[of_stream, shard_state] += 1
    for name, ack in view.seen.acks.items():
        if ack.state == "waiting" and name not in view.state.shards:
            shards[ack.stream, "waiting"] += 1
    for (stream, state), count in shards.items():
        metrics.set("tamis_registry_shards", count, stream=stream, state=state)
    queries = Counter(alert_state(view, alert)[0] for alert in view.state.of_kind("alert"))
    for query_state, count in queries.items():
        metrics.set("tamis_registry_queries", count, state=query_state)
    unproven = Counter(
        (definition.alert, word)
        for definition in view.plan.definitions
        for source in definition.inputs
        for word in ("heuristic", "trusted")
        if (source.certificate or "").startswith(word)
    )
    for (query, certificate), count in unproven.items():
        metrics.set("tamis_registry_unproven_streams", count, query=query, certificate=certificate)
    for alert in {query.alert for query in view.plan.queries if view.unproven(query)}:
        metrics.set("tamis_registry_unproven_queries", 1, query=alert)
    for stored in view.state.of_kind("alert"):
        found = history(stored, view.state, view.seen)
        if found is not None and found.begins is not None:
            metrics.set("tamis_registry_history_start_seconds", found.begins / 1e6, query=stored.name)
    topics = Counter[str]()
    for planned in view.plan.streams:
        topics[planned.shards_of] += len(planned.topics)
    for stream, count in topics.items():
        metrics.set("tamis_registry_topics", count, stream=stream)
    for keys in key_counts(view):
        labels = {"stream": keys.stream, "topic": keys.topic}
        metrics.set("tamis_registry_keys", keys.held, **labels)
        metrics.set("tamis_registry_declared_keys", keys.declared, **labels)
    for bound in topic_bounds(view):
        labels = {"stream": bound.stream, "topic": bound.topic}
        metrics.set("tamis_registry_partial_bound_records", bound.records, **labels)
        metrics.set("tamis_registry_partial_bound_rows", bound.rows, **labels)
    leases = Counter(lease.stream for lease in view.state.leases.values())
    for stream, count in leases.items():
        metrics.set("tamis_registry_leases", count, stream=stream)
    metrics.set("tamis_plan_version", view.plan.version, service="registry")

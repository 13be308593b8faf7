"""Checks of the registry, of how far the fleet uses the newest plan, of the joiner, and of sinks."""

from __future__ import annotations

from tamis.doctor.finding import MOST, Finding, State, listed
from tamis.doctor.places import Places
from tamis.errors import InputError, TamisError


def reachable(places: Places) -> Finding:
    """An answer of the registry."""
    try:
        alerts = places.registry.request("GET", "/v1/alerts")
    except TamisError as error:
        state: State = "failed" if places.registry_named or not error.retriable else "unchecked"
        return Finding(state, f"{error.where}: {error.what}", error.hint or "")
    return Finding("ok", f"{places.registry.url} answers; it has {len(alerts)} alerts")


def cluster(places: Places) -> Finding:
    """The Kafka cluster of the registry beside the one that the settings of Kafka lead to."""
    ours: str | None = places.cluster.cluster_id
    try:
        theirs = places.registry.request("GET", "/v1/kafka")["cluster_id"]
    except InputError:
        places.registry.request("GET", "/v1/plans")  # raises the error if it isn't about this path
        return Finding("unchecked", "the registry is of an older release and doesn't tell its Kafka cluster")
    if ours is None or theirs is None:
        return Finding("unchecked", "Kafka doesn't tell the id of its cluster")
    if ours == theirs:
        return Finding("ok", f"the registry uses this Kafka (cluster {ours})")
    return Finding(
        "failed",
        f"the registry at {places.registry.url} uses the Kafka cluster {theirs}, and "
        f"{places.kafka.bootstrap} leads to the cluster {ours}: these are two fleets",
        "set TAMIS_KAFKA_BOOTSTRAP or --bootstrap, and TAMIS_REGISTRY or --registry, to addresses of one "
        "fleet; until then, `topics` and `clock` are about another fleet than the checks below",
    )


def plan(places: Places) -> Finding:
    """The newest plan, and the shards that don't use it. Failing sources of edges are named, too."""
    plans = places.registry.request("GET", "/v1/plans")
    newest = max((one["version"] for one in plans), default=0)
    edges = places.registry.request("GET", "/v1/edges")
    shards = [shard for edge in edges for shard in edge["shards"]]
    late = [edge["why"][0] for edge in edges if not edge["shards"]]
    late += [shard["why"] for shard in shards if shard["state"] in ("waiting", "behind", "away", "gone")]
    late += [
        f"{edge['name']}: source {source} fails: {why}"
        for edge in edges
        for source, why in edge.get("failing", {}).items()
    ]
    if late:
        todo = "`tamis get edges` shows every shard; docs/troubleshoot.md says what to look at next"
        return Finding("warning", f"plan {newest}: {listed(late)}", todo)
    if not edges:
        return Finding("unchecked", f"plan {newest}: no edge has reported")
    return Finding("ok", f"all {len(shards)} shards use plan {newest}, or have ended")


def joiner(places: Places) -> Finding:
    """The joiner: how long ago it reported, and if it keeps up."""
    found = places.registry.request("GET", "/v1/joiner")
    state, why, ago = found["state"], "; ".join(found["why"][:MOST]), found.get("reported_ago")
    if state == "unknown":
        return Finding("unchecked", why or "the joiner has reported nothing yet")
    if state == "silent":
        todo = "no alert is evaluated: look at the joiner's process and log, and start it again if it hangs"
        return Finding("failed", why, todo)
    if state == "behind":
        todo = "`tamis get joiner` shows every partition; docs/troubleshoot.md says what to look at next"
        return Finding("warning", why, todo)
    return Finding("ok", f"the joiner reported {ago} s ago, and uses plan {found['plan']}")


def sinks(places: Places) -> Finding:
    """The sinks of notifications: what waits for them."""
    found = places.registry.request("GET", "/v1/sinks")
    if not found:
        return Finding("unchecked", "the alerts service has reported nothing yet")
    # A service that is silent has the same reason for each sink.
    reasons = list(dict.fromkeys(why for one in found for why in one["why"]))
    if not reasons:
        return Finding(
            "ok", f"{len(found)} sinks ({', '.join(one['name'] for one in found)}) take notifications"
        )
    silent = any(one["state"] == "silent" for one in found)
    todo = (
        "nobody is notified: look at the process and the log of the alerts service"
        if silent
        else "look at the receiver of the sink, and at the `sinks` of the alerts service's configuration"
    )
    return Finding("failed" if silent else "warning", listed(reasons), todo)

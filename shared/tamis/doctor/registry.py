"""Checks of the registry, and of how far the fleet uses the newest plan."""

from __future__ import annotations

from tamis.doctor.finding import Finding, State
from tamis.doctor.places import Places
from tamis.errors import TamisError

_MOST = 5  # reasons that one finding names


def reachable(places: Places) -> Finding:
    """An answer of the registry."""
    try:
        alerts = places.registry.request("GET", "/v1/alerts")
    except TamisError as error:
        state: State = "failed" if places.registry_named or not error.retriable else "unchecked"
        return Finding(state, f"{error.where}: {error.what}", error.hint or "")
    return Finding("ok", f"{places.registry.url} answers; it has {len(alerts)} alerts")


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
        more = f"; and {len(late) - _MOST} more" if len(late) > _MOST else ""
        todo = "`tamis get edges` shows every shard; docs/troubleshoot.md says what to look at next"
        return Finding("warning", f"plan {newest}: {'; '.join(late[:_MOST])}{more}", todo)
    if not edges:
        return Finding("unchecked", f"plan {newest}: no edge has reported")
    return Finding("ok", f"all {len(shards)} shards use plan {newest}, or have ended")

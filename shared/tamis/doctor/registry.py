"""Checks of the registry, of how far the fleet uses the newest plan, of the joiner, and of sinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.doctor.places import MOST, Finding, Places, State, listed
from tamis.durations import seconds
from tamis.errors import InputError, TamisError

# Of the readings of a shard: a few late ones are part of most networks.
_MANY_LATE = 0.001


def readings(places: Places) -> Finding:
    """Readings of the last minutes that became dead letters, were late, or are doubtful."""
    shards = [shard for edge in places.registry.request("GET", "/v1/edges") for shard in edge["shards"]]
    reasons = [
        f"shard {shard['shard']}: {reason}"
        for shard in shards
        for reason in (*unusual(shard), *shard.get("doubts", ()))
    ]
    if reasons:
        todo = (
            "`tamis get dead-letters` shows the newest with their reasons; docs/troubleshoot.md says what to "
            "do about late and doubtful readings"
        )
        return Finding("warning", listed(reasons), todo)
    counted = [shard["recent"]["tuples"] for shard in shards if shard.get("recent") is not None]
    if not counted:
        return Finding("unchecked", "no edge has told what became of its readings yet")
    number = sum(sum(tuples.values()) for tuples in counted)
    if number == 0:
        return Finding("ok", "no reading has come in the last minutes")
    return Finding("ok", f"none of the {number} newest readings became a dead letter, and few were late")


def unusual(shard: Mapping[str, Any]) -> Iterator[str]:
    """The reasons to look at a shard of `GET /v1/edges`: readings that became dead letters or were late.

    >>> counts = {"published": 80, "late": 10, "dead": 10}
    >>> for reason in unusual({"recent": {"seconds": 400, "tuples": counts}}):
    ...     print(reason)
    10 of 100 readings became dead letters in the last 400 s
    10 of 100 readings were late in the last 400 s
    """
    # A registry of an older release doesn't know what is recent.
    if (recent := shard.get("recent")) is None:
        return
    tuples = recent["tuples"]
    number, dead, late = sum(tuples.values()), tuples.get("dead", 0), tuples.get("late", 0)
    when = f"in the last {seconds(recent['seconds'] * 1_000_000)}"
    if dead:
        yield f"{dead} of {number} readings became dead letters {when}"
    if late > _MANY_LATE * number:
        yield f"{late} of {number} readings were late {when}"


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

"""Check of the readings that edges received in the last minutes: dead letters, late and doubtful ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.doctor.finding import Finding, listed
from tamis.doctor.places import Places
from tamis.durations import seconds

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

"""History of an alert WITH (from = …): the time of the earliest reading that edges have found for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tamis.messaging.records import Ack
from tamis.query.backfill import From
from tamis_registry.core.shards.backfill import backfills, held_back, without_history
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import State, Stored


@dataclass(frozen=True)
class History:
    """The history that an alert has. Times are microseconds.

    `since`: what the alert asks for. `begins`: the least event time of the readings that count, as far as
    edges have read; None before the first, and without event time. `shards`: the reports of the shards that
    have read something, by name.
    """

    since: From
    begins: int | None
    shards: Mapping[str, Ack]


def history(stored: Stored, state: State, seen: FleetReports) -> History | None:
    """The history of an alert; None if it has none."""
    alert = stored.alert
    if alert is None or alert.options.from_ is None:
        return None
    names = {one.name for one in backfills(stored)}
    found = {
        name: ack
        for name, shard in sorted(state.shards.items())
        if shard.stream in names and (ack := seen.acks.get(name)) is not None and ack.first_offset is not None
    }
    times = [ack.earliest for ack in found.values() if ack.earliest is not None]
    least = min(times, default=None)
    since = alert.options.from_
    begins = least if least is None or since == "earliest" else max(least, since)
    return History(since, begins, found)


def waits_for(stored: Stored, state: State, seen: FleetReports, now: int) -> Iterator[str]:
    """The reasons why edges don't read an alert's history yet."""
    streams = backfills(stored)
    if streams:
        held = held_back(state, seen, now)
        yield from dict.fromkeys(held[one.name] for one in streams if one.name in held)


def lacks(stored: Stored, state: State, seen: FleetReports) -> Iterator[str]:
    """The shards whose readings don't reach an alert with `from`."""
    for one in backfills(stored):
        for shard in without_history(one.stream, state, seen):
            yield (
                f"the readings of shard {shard} don't reach it: with from, it reads only sources that can be "
                "read again"
            )

"""Shards of backfill streams: listed all at once, and forgotten with their alert.

A stream that has no shard yet follows its partners (protocol, rule 9), and a shard that is listed later than
the others of its stream doesn't hold the stream's frontier before. Either would lose history, because the
first shards may read years of it within a minute. So no shard of an alert's backfill streams is listed before
all of them wait: one for each shard of the raw streams.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.planning.backfill_streams import backfill
from tamis.query.backfill import Backfill, shard_of
from tamis_registry.core.shards.fleet_reports import AWAY_AFTER, FleetReports
from tamis_registry.core.state.model import State, Stored


def backfills(stored: Stored) -> list[Backfill]:
    """The backfill streams that an alert reads, in the order of its sources."""
    alert = stored.alert
    if alert is None or alert.options.from_ is None:
        return []
    names = dict.fromkeys(source.stream for source in alert.query.sources)
    return [found for name in names if (found := backfill(alert, stored.version, name)) is not None]


def held_back(state: State, seen: FleetReports, now: int) -> dict[str, str]:
    """The backfill streams whose first shards must not be listed yet, each with the reason."""
    found: dict[str, str] = {}
    begun = {shard.stream for shard in state.shards.values()}
    for stored in state.statements.values():
        streams = [one for one in backfills(stored) if one.stream in state.catalog.streams]
        if streams and begun.isdisjoint(one.name for one in streams):
            reason = _missing(streams, state, seen, now)
            if reason is not None:
                found |= {one.name: reason for one in streams}
    return found


def _missing(streams: Iterable[Backfill], state: State, seen: FleetReports, now: int) -> str | None:
    """The reason why not all shards of backfill streams wait; None if they do."""
    if now - seen.floor <= AWAY_AFTER:
        return "the registry has just started, and waits until it has heard of every shard"
    for one in streams:
        waiting = {
            ack.shard
            for ack in seen.acks.values()
            if ack.stream == one.name and ack.state == "waiting" and seen.present(ack.shard, now)
        }
        if not waiting:
            return f"no edge has opened the sources of stream {one.stream} at their beginning yet"
        for shard in sorted(_sources(one.stream, state, seen, now)):
            if (other := shard_of(one.name, shard)) not in waiting:
                return f"shard {other} has not announced itself yet, which reads what {shard} reads"
    return None


def _sources(stream: str, state: State, seen: FleetReports, now: int) -> set[str]:
    """The shards of a raw stream that edges read now, or that are listed, with sources that can be read
    again. Listed or not: a source without new readings has history, too.
    """
    known = {name for name, ack in seen.acks.items() if ack.stream == stream and seen.present(name, now)}
    known |= {shard.name for shard in state.listed([stream])}
    return {name for name in known if (ack := seen.acks.get(name)) is None or ack.rereadable is not False}


def without_history(stream: str, state: State, seen: FleetReports) -> list[str]:
    """The listed shards of a raw stream whose sources can't be read again, by name."""
    listed = [shard.name for shard in state.listed([stream])]
    return [name for name in listed if (ack := seen.acks.get(name)) is not None and ack.rereadable is False]


def forget_unread(draft: State) -> None:
    """Forget the shards and topics of backfill streams whose alert is gone.

    No plan ever has a stream of the same name again, so final records aren't needed: the joiner forgets the
    topics with the plan.
    """
    for name, shard in list(draft.shards.items()):
        if unread(shard.stream, draft):
            del draft.shards[name]
    for stream in [stream for stream in draft.topics if unread(stream, draft)]:
        del draft.topics[stream]


def unread(stream: str, draft: State) -> bool:
    """True for a backfill stream whose alert is gone."""
    found = Backfill.named(stream)
    return found is not None and all(
        one.kind != "alert" or one.version != found.version for one in draft.statements.values()
    )

"""Alerts WITH (from = …), which also read readings from before they were created.

Backfill streams have shards of their own, which end when the history is read. Such an alert has one
definition for all of its life: another one would read the history again, and raise the same alarms a second
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tamis.declarations.backfill import Backfill, From, shard_of
from tamis.errors import NotAcceptedError
from tamis.messaging.records import Ack
from tamis.planning.stream_plans import backfill
from tamis.query.model import AlertDef, SetPaused
from tamis_registry.core.shards.fleet_reports import AWAY_AFTER, FleetReports
from tamis_registry.core.state.model import State, Stored
from tamis_registry.core.statements.catalog_changes import Conflict, same


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


def check_history(made: AlertDef, state: State, seen: FleetReports) -> None:
    """Check that edges can read the sources of a new alert's streams again. Raises NotAcceptedError."""
    known = state.catalog.alerts.get(made.name)
    if made.options.from_ is None or (known is not None and same(known, made)):
        return
    for stream in dict.fromkeys(source.stream for source in made.query.sources):
        if shards := without_history(stream, state, seen):
            raise NotAcceptedError(
                f"from: {', '.join(shards[:3])} of stream {stream} can't be read again: readings of HTTP and "
                "MQTT are deleted once they are used",
                where=f"{made.position}: alert {made.name}",
                hint="leave from out, or send the readings to a Kafka topic that edges read",
            )


def check_replaced(known: AlertDef, made: AlertDef) -> None:
    """Check that an alert that reads history isn't replaced, nor another one by it. Raises Conflict."""
    if same(known, made) or (known.options.from_ is None and made.options.from_ is None):
        return
    raise Conflict(
        f"alert '{made.name}' can't be replaced: with from, its definition reads the history of its streams, "
        "and would raise the same alarms again",
        made.position,
        f"choose another name, or write DROP ALERT {made.name} first",
    )


def check_paused(known: AlertDef, wish: SetPaused) -> None:
    """Check that an alert that reads history isn't paused. Raises Conflict."""
    if known.options.from_ is None or not wish.paused:
        return
    raise Conflict(
        f"alert '{known.name}' can't be paused: with from, it would read the history of its streams again "
        "when it is resumed",
        wish.position,
        f"write DROP ALERT {known.name}",
    )


def cannot_change(alert: str) -> tuple[str, str]:
    """The reason why a stream or function that an alert with `from` reads can't change, and what to do."""
    return (
        f"alert '{alert}' would need a new definition, which would read the history of its streams again",
        f"write DROP ALERT {alert} first",
    )

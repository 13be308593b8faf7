"""Shards that a plan lists (protocol, rule 12). Each function changes a draft and returns the changes.

`n` is the version of the plan for which the draft is made. A delisted shard keeps its record for two reasons:
it is listed again only after it has seen a plan that doesn't list it, and its final records are written again
after a restart.

Unused shards: their sources never had a reading, and nobody misses one.

A shard is *undeclared* if its edge's configuration doesn't name its stream: the HTTP source of an edge
without `streams` has a shard for each stream (`Ack.unused`, as long as it has had no reading). Two things are
decided, the first one in each turn of the registry:

- Joins needn't wait for an undeclared shard while another shard brings the readings of its stream
  (`unneeded`). A declared one is waited for until `max_stall`, since its first reading may come.
- After it was delisted, a shard makes no alert degraded if it is undeclared, or if another shard of its
  stream is listed (`unmissed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tamis.declarations.backfill import Backfill
from tamis.errors import RefusedError
from tamis.messaging.records import Ack
from tamis.wording.names import suggest
from tamis_registry.core.errors import MissingError
from tamis_registry.core.shards.backfill import held_back, unread
from tamis_registry.core.shards.fleet_reports import AWAY_AFTER, FleetReports
from tamis_registry.core.state.model import FORGOTTEN, Shard, State


def unneeded(shards: Iterable[Shard], seen: FleetReports) -> set[str]:
    """The undeclared shards for which joins needn't wait. `shards`: those of all streams."""
    unused = {name for name, ack in seen.acks.items() if ack.unused}
    if not unused:
        return unused
    served = {shard.stream for shard in shards if _brings_readings(shard, seen, unused)}
    return {name for name in unused if seen.acks[name].stream in served}


def unmissed(ack: Ack | None, others: Iterable[Shard]) -> bool:
    """True if a delisted shard never had a reading and nobody misses one. `others`: those of its stream."""
    if ack is None or ack.tuples is None or any(ack.tuples.values()):
        return False
    return bool(ack.unused) or any(other.since is not None for other in others)


def _brings_readings(shard: Shard, seen: FleetReports, unused: set[str]) -> bool:
    return shard.since is not None and shard.name in seen.acks and shard.name not in unused


def delist_ended(draft: State, seen: FleetReports, n: int) -> bool:
    """Delist the shards that have reported last that they ended."""
    ended = [
        shard
        for shard in draft.shards.values()
        if shard.since is not None and shard.name in seen.acks and seen.acks[shard.name].state == "final"
    ]
    for shard in ended:
        draft.shards[shard.name] = replace(shard, since=None, gone=n, reason="ended")
    return bool(ended)


def declare_gone(draft: State, seen: FleetReports, now: int, n: int) -> bool:
    """Delist the shards that are silent for longer than their stream's `max_stall`, and those that are unused
    because the readings of their stream come another way.
    """
    ignored = unneeded(draft.shards.values(), seen)
    silent = [
        shard
        for shard in draft.shards.values()
        if shard.since is not None
        and (stream := draft.raw_stream(shard.stream))
        and (shard.name in ignored or seen.silence(shard.name, now) > stream.max_stall)
    ]
    for shard in silent:
        draft.shards[shard.name] = replace(shard, since=None, gone=n, reason="silent")
    return bool(silent)


def delist_dropped(draft: State, streams: Iterable[str], n: int) -> None:
    """Delist the shards of streams that are dropped."""
    for shard in draft.listed(streams):
        draft.shards[shard.name] = replace(shard, since=None, gone=n, reason="dropped")


def forget(draft: State, seen: FleetReports, name: str, now: int, n: int) -> Shard:
    """Delist a shard of which nothing new came lately, because somebody says that nothing more will: joins no
    longer wait until its `max_stall` has passed, and it makes no alert degraded. It comes back with its next
    reading.

    Its record stays, for the reasons above. Raises MissingError, or RefusedError if the shard may be in use.
    """
    ack, known = seen.acks.get(name), draft.shards.get(name)
    if (known is None and (ack is None or ack.state != "waiting")) or (known and known.reason in FORGOTTEN):
        names = {name for name, shard in draft.shards.items() if shard.reason not in FORGOTTEN}
        hint = suggest(name, names, "`tamis get edges` lists what there is")
        raise MissingError(f"there is no shard '{name}'", hint=hint)
    if seen.silence(name, now) <= AWAY_AFTER:
        seconds = AWAY_AFTER // 1_000_000
        raise RefusedError(
            f"shard {name} had something new in the last {seconds} s, or the registry has just begun to"
            " listen",
            hint=f"once nothing has come for {seconds} s, try again; if readings still come, first stop its"
            " source or remove it from the edge's configuration",
        )
    if known is None:
        assert ack is not None
        known = Shard(name, ack.stream, ack.edge, since=None, gone=draft.version)
    if known.since is not None:
        known = replace(known, since=None, gone=n)
    draft.shards[name] = replace(known, reason="given_up")
    return draft.shards[name]


def list_waiting(draft: State, seen: FleetReports, now: int, n: int) -> bool:
    """List the shards that wait, are present, had a reading recently, and know that they aren't listed.

    A shard that was given up comes back only with a reading (`back_with_reading`).
    """
    came = False
    held: dict[str, str] | None = None
    ignored = unneeded(draft.shards.values(), seen)
    for name, ack in seen.acks.items():
        known = draft.shards.get(name)
        if (
            ack.state == "waiting"
            and (known is None or known.since is None)
            and ack.plan >= ((known.gone or 0) if known else 0)
            and seen.present(name, now)
            and (stream := draft.raw_stream(ack.stream))
            and ack.quiet <= stream.max_stall
            and not (ack.unread is False and _given_up(draft, known))
            and name not in ignored
            and not unread(ack.stream, draft)
        ):
            if Backfill.named(ack.stream) is not None:
                # This looks at all alerts, and so it is left out where no shard asks for it.
                held = held_back(draft, seen, now) if held is None else held
                if ack.stream in held:
                    continue
            draft.shards[name] = Shard(name, ack.stream, ack.edge, since=n)
            came = True
    return came


def _given_up(draft: State, known: Shard | None) -> bool:
    """True if joins would wait again, until `max_stall` has passed, for a shard that was declared gone or
    given up, if it were listed without a reading. An edge that has restarted doesn't know for how long its
    source has been silent.

    Nothing waits for a shard whose stream has an `idle_timeout`.
    """
    if known is None or known.reason not in ("silent", "given_up"):
        return False
    stream = draft.raw_stream(known.stream)
    return stream is not None and stream.idle_timeout is None

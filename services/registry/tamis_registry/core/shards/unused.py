"""Unused shards: their sources never had a reading, and nobody misses one.

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

from tamis.messaging.records import Ack
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import Shard


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

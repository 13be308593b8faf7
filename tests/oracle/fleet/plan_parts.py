"""The part of a plan that an edge needs, by the objects of the plan: the oracle of `tamis.plan.parts`."""

from __future__ import annotations

from dataclasses import replace

from tamis.plan.model import Plan


def part_of(plan: Plan, streams: set[str] | None) -> Plan:
    """What an edge with sources of these raw streams needs of a plan; None: of every stream."""
    names = {one.name for one in plan.streams} if streams is None else set(streams)
    names |= {one.name for one in plan.streams if one.origin in names}
    kept = tuple(one for one in plan.streams if one.name in names or one.base in names)
    names |= {one.name for one in kept}
    definitions = [
        one
        for one in plan.definitions
        if (len(one.inputs) == 1 or f"{one.alert}@{one.version}" in plan.retiring)
        and names & {source.stream for source in one.inputs}
    ]
    ids = {f"{one.alert}@{one.version}" for one in definitions}
    shards = {shard: stream for shard, stream in plan.shard_streams.items() if stream in names}
    return Plan(
        plan.version,
        plan.partitions,
        kept,
        tuple(definitions),
        {shard: version for shard, version in plan.since.items() if shard in shards},
        shards,
        {name: version for name, version in plan.retiring.items() if name in ids},
    )


def in_order(plan: Plan) -> Plan:
    """The plan with streams and definitions in the order of their names, which is of no importance."""
    return replace(
        plan,
        streams=tuple(sorted(plan.streams, key=lambda one: one.name)),
        definitions=tuple(sorted(plan.definitions, key=lambda one: (one.alert, one.version))),
    )

"""When the old definition of a replaced alert may end (protocol, rule 11, `contract_frontier`).

It runs beside its successor until nothing can need it: every listed shard of its streams obeys the
successor's plan, the joiner has taken the final records of those that are gone (`finals_taken`: what they
sent under older plans may still wait in Kafka), and every frontier has passed the greatest activation plus
the definition's span plus its largest omission interval, or the stream has no shard left.
"""

from __future__ import annotations

from itertools import product

from tamis.planning.plan import Definition
from tamis_registry.core.membership import void_since
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State

_INFINITE = float("inf")


def span(definition: Definition) -> int | None:
    """The longest time between two tuples of one combination, microseconds; None where nothing bounds it.

    All-pairs shortest paths over the time bounds (Floyd and Warshall).
    """
    names = [source.alias for source in definition.inputs]
    upper = {(a, b): 0.0 if a == b else _INFINITE for a, b in product(names, names)}
    for bound in definition.bounds:
        if bound.hi is not None:
            upper[bound.left, bound.right] = min(upper[bound.left, bound.right], bound.hi)
        if bound.lo is not None:
            upper[bound.right, bound.left] = min(upper[bound.right, bound.left], -bound.lo)
    for middle, a, b in product(names, names, names):
        upper[a, b] = min(upper[a, b], upper[a, middle] + upper[middle, b])
    longest = max((abs(value) for value in upper.values()), default=0.0)
    return None if longest == _INFINITE else int(longest)


def still_needed(definition: Definition, successor: int, state: State, seen: Seen) -> str | None:
    """Why the old definition runs on beside the one that version `successor` made; None when it may end."""
    streams = {source.stream for source in definition.inputs}
    until = 0
    for shard in state.listed(streams):
        needed = max(successor, shard.since or 0)
        ack = seen.obeys(shard.name, needed)
        if ack is None:
            return f"shard {shard.name} has not taken up plan {needed} yet"
        until = max(until, ack.activation)
    reach = span(definition)
    voids = {stream: void_since(state, stream) for stream in streams}
    if reach is not None:
        until += reach + max(source.interval for source in definition.inputs)
    for source, partition in product(definition.inputs, range(state.partitions)):
        frontier = seen.frontiers.get(partition)
        topic = frontier.topics.get(source.topic) if frontier else None
        void = voids[source.stream]
        for shard in state.shards.values():
            if shard.stream == source.stream and shard.gone is not None:
                taken = frontier and topic and frontier.plan >= shard.gone and shard.name not in topic.shards
                if not taken:
                    return f"the final record of shard {shard.name} in partition {partition} is not taken yet"
        if frontier and topic and topic.void and void is not None and frontier.plan >= void:
            continue
        if reach is None:
            return "no time bound says when its last combination can have come; drop the alert to end it"
        if topic is None or topic.frontier is None or topic.frontier <= until:
            return (
                f"the frontier of {source.topic} in partition {partition} has not passed its last combination"
            )
    return None

"""When the old definition of a replaced alert may end (protocol, rule 11, `contract_frontier`).

It runs beside its successor until nothing can need it: every listed shard of its streams obeys the
successor's plan, the joiner has taken the final records of those that are gone (`finals_taken`: what they
sent under older plans may still wait in Kafka), and every frontier has passed the span plus the largest
omission interval behind the last tuple of an older plan: behind the greatest activation of a shard that is
listed, and the last tuple of one that is gone (`gone_counts`).
"""

from __future__ import annotations

import numpy as np

from tamis.evaluation.time_bounds import UNBOUNDED, closure
from tamis.messaging.records import NOTHING_LEFT, Frontier
from tamis.planning.plan import Definition
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State


def span(definition: Definition) -> int | None:
    """The longest time between two tuples of one combination, microseconds; None where nothing bounds it."""
    most = closure(definition)
    if most is None:
        return 0  # the bounds contradict each other: there is no combination
    longest = int(np.abs(most).max())
    return None if longest >= UNBOUNDED else longest


def still_needed(definition: Definition, successor: int, state: State, seen: Seen) -> str | None:
    """Why the old definition runs on beside the one that version `successor` made; None when it may end."""
    streams = {source.stream for source in definition.inputs}
    last = 0
    for shard in state.listed(streams):
        needed = max(successor, shard.since or 0)
        ack = seen.obeys(shard.name, needed)
        if ack is None:
            return f"shard {shard.name} has not taken up plan {needed} yet"
        last = max(last, ack.activation)
    reach = span(definition)
    for partition in range(state.partitions):
        frontier = seen.frontiers.get(partition)
        reason = _needed_in(partition, definition, state, frontier, last=last, reach=reach)
        if reason is not None:
            return reason
    return None


def _needed_in(
    partition: int,
    definition: Definition,
    state: State,
    frontier: Frontier | None,
    *,
    last: int,
    reach: int | None,
) -> str | None:
    """The same for one output partition; `last` is the greatest activation of a listed shard, `reach` the
    definition's span.
    """
    topics = frontier.topics if frontier else {}
    for source in definition.inputs:
        topic = topics.get(source.topic)
        for shard in state.shards.values():
            if shard.stream == source.stream and shard.gone is not None:
                taken = frontier and topic and frontier.plan >= shard.gone and shard.name not in topic.shards
                if not taken:
                    return f"the final record of shard {shard.name} in partition {partition} is not taken yet"
        if topic is not None:
            last = max(last, topic.left)
    for source in definition.inputs:
        topic = topics.get(source.topic)
        if topic and topic.left == NOTHING_LEFT and not state.listed([source.stream]):
            continue  # nothing was sent, and nobody is there to send
        if reach is None:
            return "no time bound says when its last combination can have come; drop the alert to end it"
        until = last + reach + max(source.interval for source in definition.inputs)
        if topic is None or topic.frontier is None or topic.frontier <= until:
            return (
                f"the frontier of {source.topic} in partition {partition} has not passed its last combination"
            )
    return None

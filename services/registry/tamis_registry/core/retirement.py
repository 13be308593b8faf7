"""When the old definition of a replaced alert may end (protocol, rule 11, `contract_frontier`).

It runs beside its successor until nothing can need it: every listed shard of its streams obeys the
successor's plan, the joiner has taken the final records of those that are gone (`finals_taken`: what they
sent under older plans may still wait in Kafka), and every frontier has passed the span plus the largest
omission interval behind the last tuple of an older plan: behind the greatest activation of a shard that is
listed, and the last tuple of one that is gone (`gone_counts`).

A standing query ends as soon as all tuples of plans before its successor's are counted: those after it
aren't its own. A shard that fell silent may be cut off, and go on under the plan that it knows: only its
progress once it is back tells that all of that is there (`back_first`).
"""

from __future__ import annotations

import numpy as np

from tamis.evaluation.time_bounds import UNBOUNDED, closure
from tamis.messaging.records import NOTHING_LEFT, Frontier
from tamis.planning.plan import Definition, Input, StandingQuery
from tamis.planning.remembered import MOST, Remembered
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State


def span(definition: Definition) -> int | None:
    """The longest time between two tuples of one combination, microseconds; None where nothing bounds it."""
    most = closure(definition)
    if most is None:
        return 0  # the bounds contradict each other: there is no combination
    longest = int(np.abs(most).max())
    return None if longest >= UNBOUNDED else longest


def unproven(definition: Definition | StandingQuery) -> bool:
    """Whether nobody knows that its memory is bounded: it runs since it was allowed to."""
    if isinstance(definition, StandingQuery):
        return not definition.proven
    return _UNPROVEN.one(definition, lambda: span(definition) is None)


_UNPROVEN = Remembered[bool](MOST)


def still_needed(
    definition: Definition | StandingQuery, successor: int, state: State, seen: Seen
) -> str | None:
    """Why the old definition runs on beside the one that version `successor` made; None when it may end."""
    streams = {source.stream for source in definition.inputs}
    last = 0
    for shard in state.listed(streams):
        needed = max(successor, shard.since or 0)
        ack = seen.obeys(shard.name, needed)
        if ack is None:
            return f"shard {shard.name} has not taken up plan {needed} yet"
        last = max(last, ack.activation)
    if isinstance(definition, StandingQuery):
        return _still_counting(definition, successor, state, seen)
    reach = span(definition)
    for partition in range(state.partitions):
        frontier = seen.frontiers.get(partition)
        reason = _needed_in(partition, definition, state, frontier, last=last, reach=reach)
        if reason is not None:
            return reason
    return None


def _still_counting(query: StandingQuery, successor: int, state: State, seen: Seen) -> str | None:
    """The same for a standing query whose listed shards obey the successor's plan."""
    away = _away(query, state)
    if away is not None:
        return f"shard {away} fell silent, and may still bring tuples of older plans until it is back"
    for partition in range(state.partitions):
        reason = _counting_in(partition, query, state, seen.frontiers.get(partition), successor)
        if reason is not None:
            return reason
    return None


def _away(query: StandingQuery, state: State) -> str | None:
    """A shard that fell silent while the query was in the plans that it was listed in, and isn't back.

    It reads on under the last of them until it knows better. No plan after `gone` has listed it: those have
    queries that it can't have met.
    """
    streams = {source.stream for source in query.inputs}
    return next(
        (
            shard.name
            for shard in state.shards.values()
            if shard.stream in streams and shard.reason == "silent" and (shard.gone or 0) > query.version
        ),
        None,
    )


def _counting_in(
    partition: int, query: StandingQuery, state: State, frontier: Frontier | None, successor: int
) -> str | None:
    """Why tuples of older plans may still be on their way in one output partition."""
    listed = state.listed({source.stream for source in query.inputs})
    # Before it has the plan that lists a shard, the joiner says nothing of that one.
    plan = max([successor, *(shard.since or 0 for shard in listed)])
    if frontier is None or frontier.plan < plan:
        return f"the joiner has not taken up plan {plan} in partition {partition} yet"
    for source in query.inputs:
        reason = _gone_in(partition, source, state, frontier)
        if reason is not None:
            return reason
        topic = frontier.topics.get(source.topic)
        if topic is not None and topic.obeyed is not None and topic.obeyed < successor:
            return f"tuples of older plans may still come on {source.topic} in partition {partition}"
    return None


def _gone_in(partition: int, source: Input, state: State, frontier: Frontier | None) -> str | None:
    """Why shards that are gone may still have something on its way."""
    topic = frontier.topics.get(source.topic) if frontier else None
    for shard in state.shards.values():
        if shard.stream == source.stream and shard.gone is not None:
            taken = frontier and topic and frontier.plan >= shard.gone and shard.name not in topic.shards
            if not taken:
                return f"the final record of shard {shard.name} in partition {partition} is not taken yet"
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
        reason = _gone_in(partition, source, state, frontier)
        if reason is not None:
            return reason
        topic = topics.get(source.topic)
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

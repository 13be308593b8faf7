"""End of a replaced alert's old definition: the conditions under which it may end (protocol, rule 11).

Which definition counts a combination depends on the least plan version of the combination's tuples. Therefore
the old definition runs beside its successor as long as a tuple from before the successor's plan may still
arrive, or still waits for a partner. It may end when

- every listed shard of its streams has sent progress under the successor's plan (`all_told`),
- the joiner has taken the final records of the shards that are gone (`finals_taken`); before that,
  tuples that these sent under older plans may still wait in Kafka, and
- no such tuple in the joiner's state can still find a partner (`none_waits`).

A standing query has no tuples that wait. A shard that fell silent may be cut off and continue under the plan
that it knows. Only its progress after it is back shows that all tuples to be counted have arrived
(`back_first`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.messaging.records import Frontier
from tamis.operators.time_join.time_bounds import UNBOUNDED, closure
from tamis.plan.model import Definition, StandingQuery
from tamis.planning.queries.definitions import definition_id
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import Shard, State


def span(definition: Definition) -> int | None:
    """The longest time between two tuples of one combination, microseconds; None if nothing bounds it."""
    most = closure(definition)
    if most is None:
        return 0  # the bounds contradict each other: there is no combination
    longest = int(np.abs(most).max())
    return None if longest >= UNBOUNDED else longest


def unproven(definition: Definition | StandingQuery) -> bool:
    """True if no bound of the query's memory is proven, and the user allowed it to run."""
    if isinstance(definition, StandingQuery):
        return not definition.proven
    return span(definition) is None


def still_needed(
    definition: Definition | StandingQuery, successor: int, state: State, seen: FleetReports
) -> str | None:
    """The reason why the old definition still runs beside its successor; None if it may end."""
    listed = state.listed({source.stream for source in definition.inputs})
    for shard in listed:
        needed = max(successor, shard.since or 0)
        if seen.obeys(shard.name, needed) is None:
            return f"shard {shard.name} has not taken up plan {needed} yet"
    if isinstance(definition, StandingQuery):
        away = _away(definition, state)
        if away is not None:
            return f"shard {away} fell silent, and may still bring tuples of older plans until it is back"
    # Before it has the plan that lists a shard, the joiner says nothing of that one.
    plan = max([successor, *(shard.since or 0 for shard in listed)])
    gone = [shard for shard in state.shards.values() if shard.gone is not None]
    for partition in range(state.partitions):
        frontier = seen.frontiers.get(partition)
        if frontier is None or frontier.plan < plan:
            return f"the joiner has not taken up plan {plan} in partition {partition} yet"
        reason = _coming(definition, successor, state, gone, frontier) or _waiting(definition, frontier)
        if reason is not None:
            return reason
    return None


def _away(query: StandingQuery, state: State) -> str | None:
    """A shard that fell silent while the query was in its plans, and that isn't back.

    Such a shard continues under the last plan that listed it. No plan after version `gone` has listed it, so
    it can't have read tuples for the queries of later plans.
    """
    streams = {state.base(source.stream) for source in query.inputs}
    return next(
        (
            shard.name
            for shard in state.shards.values()
            if shard.stream in streams and shard.reason == "silent" and (shard.gone or 0) > query.version
        ),
        None,
    )


def _coming(
    definition: Definition | StandingQuery,
    successor: int,
    state: State,
    gone: Sequence[Shard],
    frontier: Frontier,
) -> str | None:
    """The reason why tuples of older plans may still arrive in one output partition. `gone`: the shards that
    a plan delisted.
    """
    partition = frontier.partition
    for source in definition.inputs:
        topic = frontier.topics.get(source.topic)
        for shard in gone:
            if shard.stream == state.base(source.stream):
                taken = topic and frontier.plan >= (shard.gone or 0) and shard.name not in topic.shards
                if not taken:
                    return f"the final record of shard {shard.name} in partition {partition} is not taken yet"
        if topic is not None and topic.obeyed is not None and topic.obeyed < successor:
            return f"tuples of older plans may still come on {source.topic} in partition {partition}"
    return None


def _waiting(definition: Definition | StandingQuery, frontier: Frontier) -> str | None:
    """The reason why tuples of older plans in one output partition may still find a partner."""
    if isinstance(definition, StandingQuery):
        return None
    count = frontier.waiting.get(definition_id(definition.alert, definition.version))
    if count is None:
        return f"the joiner has not told of partition {frontier.partition} yet"
    if count and span(definition) is None:
        return "no time bound says when its last combination can have come; drop the alert to end it"
    if count:
        return (
            f"{count} tuple{'s' * (count > 1)} of older plans in partition {frontier.partition} "
            "may still find a partner"
        )
    return None

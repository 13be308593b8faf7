"""Partial aggregates that edges send to a topic of the fleet, with their bound."""

from __future__ import annotations

from tamis.plan.model import Plan, StreamPlan, TopicPlan
from tamis.planning.explanations.transfer import Transfer, topic_transfer
from tamis.query.model import AlertDef
from tamis_registry.core.state.model import State


def sent_to(name: str, state: State, plan: Plan) -> Transfer:
    """The form, the alerts and the bound of a topic of `plan`, which is that of `state`."""
    planned, topic = next((s, t) for s in plan.streams for t in s.topics if t.name == name)
    return sent_by(planned, topic, state, plan)


def sent_by(planned: StreamPlan, topic: TopicPlan, state: State, plan: Plan) -> Transfer:
    """As `sent_to`, of a topic of a stream of `plan`.

    It is computed once for each topic as it is: thousands of alerts may share one, and metrics ask each
    second.
    """
    stream = state.catalog.streams[planned.name]

    def alert(query: str) -> AlertDef | None:
        old = state.retiring.get(query)
        if old is not None:
            return old.definition
        stored = state.alert(query.rpartition("@")[0])
        return None if stored is None else stored.alert

    found: Transfer = state.catalog.results.get(
        (stream, topic, plan if topic.partials is None else topic),
        ("what edges send", state.partitions),
        lambda: topic_transfer(plan, topic, stream, alert, state.catalog, partitions=state.partitions),
    )
    return found

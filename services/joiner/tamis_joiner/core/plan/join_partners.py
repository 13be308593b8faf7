"""Topics that are joined with each other."""

from __future__ import annotations

from tamis.plan.model import Plan


def join_partners(plan: Plan | None) -> dict[str, frozenset[str]]:
    """By topic, the other topics that some query of the plan joins it with; only topics with event time."""
    found: dict[str, set[str]] = {}
    for definition in plan.queries if plan else ():
        topics = {source.topic for source in definition.inputs if source.time}
        for topic in topics:
            found.setdefault(topic, set()).update(topics)
    return {topic: frozenset(others - {topic}) for topic, others in found.items()}

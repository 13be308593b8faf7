"""Time for which edges and joiner keep a tuple, and the proven bound of the tuples, from a plan."""

from __future__ import annotations

from tamis.plan.model import Definition, Input, Plan, TopicPlan

SECOND = 1_000_000


def longest_wait(topic: TopicPlan) -> float:
    """The longest time in seconds for which omission holds a tuple."""
    waits = (
        one.interval if one.max_delay is None else min(one.interval, one.max_delay)
        for one in topic.entries
        if one.interval
    )
    return max(waits, default=0) / SECOND


def readers(plan: Plan, topic: TopicPlan) -> list[tuple[Definition, Input]]:
    return [(one, source) for one in plan.definitions for source in one.inputs if source.topic == topic.name]


def _longer(plan: Plan, source: Input, definition: Definition) -> int:
    """By how much a tuple is kept longer, since other queries of the partners' topics hold tuples longer."""
    held = {
        topic.name: max((entry.interval for entry in topic.entries), default=0)
        for stream in plan.streams
        for topic in stream.topics
    }
    others = (one for one in definition.inputs if one is not source)
    return max(0, *(held.get(one.topic, 0) - one.interval for one in others), 0)


def most(plan: Plan, source: Input, definition: Definition) -> int | None:
    """The proven bound of the tuples of a source, as the joiner shows it."""
    return None if source.kept is None else source.kept.most(_longer(plan, source, definition))


def span(plan: Plan, topic: TopicPlan) -> int:
    """Microseconds for which the joiner keeps a tuple of a topic.

    Unlike the proven bound, this takes into account that with `max_delay` omission holds tuples for a
    shorter time than the omission interval.
    """
    waits = {one.name: longest_wait(one) * SECOND for stream in plan.streams for one in stream.topics}
    spans = [0]
    for definition, source in readers(plan, topic):
        if source.kept is not None and source.kept.tuples:
            others = (one for one in definition.inputs if one is not source)
            longer = max((waits[one.topic] - one.interval for one in others), default=0)
            spans.append(source.kept.span + int(longer))
    return max(spans)

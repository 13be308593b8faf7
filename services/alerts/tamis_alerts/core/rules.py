"""What an alert's options mean for its episodes, from the definitions of the plan."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.planning.plan import Definition, Plan, StandingQuery

# An alert that doesn't say when an episode ends: a minute without an alarm.
DEFAULT_GAP = 60_000_000

# A row of a standing query comes again only where the joiner repeats a batch.
REPEATED = 3_600_000_000


@dataclass(frozen=True)
class Rule:
    """How alarms of one alert become episodes. Durations are microseconds.

    Omission thins the alarms of an episode and moves each by at most the largest omission interval, so two
    alarms of one episode may lie `gap` plus twice that interval apart.
    """

    alert: str
    gap: int
    for_: int
    memory: int  # an identity may come again until the frontier is this far past the alarm
    severity: str | None
    labels: tuple[tuple[str, str], ...]
    topics: frozenset[str]  # what the alert's alarms are made of: their frontiers close its episodes
    timeless: bool = False  # some have no time: its alarms then have the time at which tuples came to Kafka


def rules_of(plan: Plan) -> dict[str, Rule]:
    """The rule of every alert of a plan; of a replaced alert the newest definition's options count."""
    rules: dict[str, Rule] = {}
    for definition in sorted(plan.queries, key=lambda d: d.version):
        older = rules.get(definition.alert)
        rules[definition.alert] = _rule(definition, older)
    return rules


def _rule(definition: Definition | StandingQuery, older: Rule | None) -> Rule:
    largest = max((source.interval for source in definition.inputs), default=0)
    gap = (DEFAULT_GAP if definition.gap is None else definition.gap) + 2 * largest
    memory = REPEATED if isinstance(definition, StandingQuery) else _memory(definition, largest)
    topics = frozenset(source.topic for source in definition.inputs if source.time)
    timeless = len(topics) < len({source.topic for source in definition.inputs})
    if older:  # an old definition still runs beside the new one
        gap, memory, topics = max(gap, older.gap), max(memory, older.memory), topics | older.topics
    return Rule(
        alert=definition.alert,
        gap=gap,
        for_=definition.for_ or 0,
        memory=memory,
        severity=definition.severity,
        labels=definition.labels,
        topics=topics,
        timeless=timeless or (older is not None and older.timeless),
    )


def _memory(definition: Definition, largest: int) -> int:
    apart = definition.window.size if definition.window else 0
    ends = (abs(end) for b in definition.bounds for end in (b.lo, b.hi) if end is not None)
    reach = max((apart, *ends))
    # The joiner keeps a tuple until its partners' frontiers are `reach` past it, and an edge that restarts
    # sends again what it had not decided: at most an omission interval back. No alarm comes again after both.
    return len(definition.inputs) * reach + 2 * largest

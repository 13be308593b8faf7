"""Rules by which the alarms of an alert become episodes, from the definitions of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis.plan.model import Definition, Plan, StandingQuery
from tamis.plan.time_columns import key_columns, key_times, time_columns

# Default of `gap`: an episode ends after a minute without an alarm.
DEFAULT_GAP = 60_000_000

# A row of a standing query only comes again when the joiner repeats a batch, which is a matter of minutes.
REPEATED = 3_600_000_000


@dataclass(frozen=True)
class Rule:
    """Rule by which the alarms of one alert become episodes. Durations are in microseconds.

    Omission removes some alarms of an episode and moves each by at most the largest omission interval. So two
    alarms of one episode may be `gap` plus twice that interval apart.
    """

    alert: str
    gap: int
    for_: int
    memory: int  # an alarm may come again until the frontier is this far past it
    severity: str | None
    labels: tuple[tuple[str, str], ...]
    topics: frozenset[str]  # the topics that the alert reads: their frontiers close its episodes
    names: ColumnNames = UNNAMED  # of the columns in the keys and the rows of its alarms
    timeless: bool = (
        False  # a topic has no event time: alarms then have the time at which tuples came to Kafka
    )

    @cached_property
    def labels_by_name(self) -> dict[str, str]:
        """The labels, as the records of episodes have them."""
        return dict(self.labels)


def rules_of(plan: Plan) -> dict[str, Rule]:
    """The rule of every alert of a plan. For a replaced alert, the options of the newest definition count."""
    rules: dict[str, Rule] = {}
    for query in sorted(plan.queries, key=lambda one: one.version):
        key = key_columns(query)
        of_key = tuple(key[place] for place in key_times(query, plan))
        names = ColumnNames(key, of_key, time_columns(query))
        rules[query.alert] = _rule(query, names, rules.get(query.alert))
    return rules


def _rule(definition: Definition | StandingQuery, names: ColumnNames, older: Rule | None) -> Rule:
    largest = max((source.interval for source in definition.inputs), default=0)
    gap = (DEFAULT_GAP if definition.gap is None else definition.gap) + 2 * largest
    memory = REPEATED if isinstance(definition, StandingQuery) else _memory(definition, largest)
    topics = frozenset(source.topic for source in definition.inputs if source.time)
    timeless = len(topics) < len({source.topic for source in definition.inputs})
    if older:  # the old definition still runs beside the new one
        gap, memory, topics = max(gap, older.gap), max(memory, older.memory), topics | older.topics
    return Rule(
        alert=definition.alert,
        gap=gap,
        for_=definition.for_ or 0,
        memory=memory,
        severity=definition.severity,
        labels=definition.labels,
        topics=topics,
        names=names,
        timeless=timeless or (older is not None and older.timeless),
    )


def _memory(definition: Definition, largest: int) -> int:
    apart = definition.window.size if definition.window else 0
    ends = (abs(end) for b in definition.bounds for end in (b.lo, b.hi) if end is not None)
    reach = max((apart, *ends))
    # The joiner keeps a tuple until its partners' frontiers are `reach` past it. An edge that restarts
    # sends the tuples again that it had not decided on, at most an omission interval back. Later, no alarm
    # comes again.
    return len(definition.inputs) * reach + 2 * largest

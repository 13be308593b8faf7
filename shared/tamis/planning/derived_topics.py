"""Topics of derived streams: each has every tuple that passes, with the columns of the SELECT.

The joiner reads the topic of a derived stream that may serve alerts, too (decision 63). Its name is that of a
shared topic then. The topics of all other derived streams are only for readers outside the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, conjunction
from tamis.messaging.topics import outside_topic, stream_topic
from tamis.plan.model import Entry, TopicPlan
from tamis.plan.omission import bare
from tamis.planning.join_verdict import accepted
from tamis.planning.queries.standing_queries import layout
from tamis.query.model import Catalog, DerivedDef, JoinByTime, TimelessQuery
from tamis.sharing.topic_assignment import DerivedSource
from tamis.sharing.topic_choice import TopicKey


@dataclass(frozen=True)
class DerivedNumber:
    """The number of a derived stream's topic, which the joiner reads. `serves`: alerts may read it, too."""

    number: int
    serves: bool = True


@dataclass(frozen=True, eq=False)
class DerivedTopic:
    """The topic of a derived stream. `stream`: the stream whose edges write it. `source`: the derived stream
    as a source of alerts; None if only readers outside the fleet read its topic.
    """

    definition: DerivedDef
    stream: StreamDef
    plan: TopicPlan
    number: DerivedNumber | None
    source: DerivedSource | None = None

    @property
    def key(self) -> TopicKey:
        """The stream and partition key of the topic."""
        return self.stream.name, self.plan.partition_key

    def plan_with(self, shared: TopicPlan | None) -> TopicPlan:
        """Its plan with the columns that alerts read. `shared`: the plan of a topic for these alerts alone;
        None if there are none.
        """
        if shared is None:
            return self.plan
        entry = replace(self.plan.entries[0], serves=max(entry.serves for entry in shared.entries))
        return replace(self.plan, columns=shared.columns, entries=(entry,))


def may_serve_alerts(definition: DerivedDef, catalog: Catalog) -> bool:
    """True if the joiner reads the topic of a derived stream: a filter of one stream with time, whose SELECT
    has the event time and the KEY columns as they are.

    Without a condition the topic would be a second copy of the whole stream for the joiner.
    """
    query = definition.query
    if definition.inlined or not isinstance(query, JoinByTime) or query.windowed or not query.conjuncts:
        return False
    stream = catalog.streams[query.sources[0].stream]
    plain = {output.expr.name for output in query.select if isinstance(output.expr, Column)}
    # A watched stream serves the queries that have its patterns.
    return stream.base is None and {stream.time, *stream.key} <= plain


def derived_topics(
    catalog: Catalog, numbers: Mapping[str, DerivedNumber], before: Mapping[str, DerivedTopic]
) -> dict[str, DerivedTopic]:
    """The topics of all derived streams except joins, by name. Raises NotAcceptedError."""
    found = {}
    for name, definition in catalog.derived.items():
        if definition.inlined:
            continue
        known, number = before.get(name), numbers.get(name)
        if (
            known is None
            or known.definition is not definition
            or known.number != number
            or catalog.streams.get(known.stream.name) is not known.stream
        ):
            if isinstance(definition.query, TimelessQuery):
                known = _topic_without_time(definition, catalog)
            else:
                known = _topic_with_time(definition, number, catalog)
        found[name] = known
    return found


def derived_sources(topics: Mapping[str, DerivedTopic]) -> dict[TopicKey, list[DerivedSource]]:
    """The derived streams that may serve alerts, by stream and partition key."""
    found: dict[TopicKey, list[DerivedSource]] = {}
    for one in topics.values():
        if one.source is not None:
            found.setdefault(one.key, []).append(one.source)
    return found


def _topic_with_time(derived: DerivedDef, number: DerivedNumber | None, catalog: Catalog) -> DerivedTopic:
    """Every tuple of the base stream that passes, with the columns of SELECT."""
    verdict = accepted(derived, catalog)
    (omission,) = verdict.omissions
    key, stream = verdict.keys.partition[omission.alias], verdict.analysis.streams[omission.alias]
    topic = _topic(derived, key, _complete(bare(omission.filter), key), number)
    if number is None or not number.serves:
        return DerivedTopic(derived, stream, topic, number)
    # Implied predicates follow from the conditions, so a filter that implies these implies both.
    written = bare(conjunction(verdict.analysis.filters[omission.alias]))
    source = DerivedSource(derived.name, topic.name, written, frozenset(topic.fields))
    return DerivedTopic(derived, stream, topic, number, source)


def _topic_without_time(derived: DerivedDef, catalog: Catalog) -> DerivedTopic:
    """The topic of a derived stream without time; its tuples are counted."""
    (feed,) = layout(derived.query, catalog).feeds
    entry = _complete(feed.filter, feed.partition_key)
    topic = replace(_topic(derived, feed.partition_key, entry, None), counted=True)
    return DerivedTopic(derived, feed.stream, topic, None)


def _complete(filter_: Expr | None, key: tuple[str, ...]) -> Entry:
    """An entry without omission, which serves no numbered version."""
    return Entry(filter_, omission_key=key, value=None, interval=0, sides="both", max_delay=None, serves=0)


def _topic(
    derived: DerivedDef, key: tuple[str, ...], entry: Entry, number: DerivedNumber | None
) -> TopicPlan:
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    name = outside_topic(derived.name, 1) if number is None else stream_topic(derived.name, number.number)
    return TopicPlan(name, key, (), (entry,), select)

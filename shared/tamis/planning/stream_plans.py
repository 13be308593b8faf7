"""Streams of a plan: their columns, their shared topics, and the topics of streams derived from them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from tamis.analysis.domains import domain_check
from tamis.expressions.nodes import Expr
from tamis.messaging.topics import outside_topic
from tamis.plan.model import Entry, StreamColumn, StreamPlan, TopicPlan
from tamis.plan.omission import bare
from tamis.planning.standing_queries import layout
from tamis.planning.verdict import accepted
from tamis.query.model import Catalog, DerivedDef, StreamDef
from tamis.sharing.topic_assignment import Topic


@dataclass(frozen=True, eq=False)
class DerivedTopic:
    """The topic of a derived stream. `stream`: the stream whose edges write it."""

    definition: DerivedDef
    stream: StreamDef
    plan: TopicPlan


def derived_topics(catalog: Catalog, before: Mapping[str, DerivedTopic]) -> dict[str, DerivedTopic]:
    """The topics of all derived streams except joins, by name. Raises NotAcceptedError."""
    found = {}
    for name, definition in catalog.derived.items():
        if definition.joins:
            continue
        known = before.get(name)
        same = known is not None and known.definition is definition
        if known is None or not same or catalog.streams.get(known.stream.name) is not known.stream:
            made = _topic_without_time if definition.query.timeless else _topic_with_time
            known = made(definition, catalog)
        found[name] = known
    return found


def stream_plans(
    catalog: Catalog, topics: Mapping[Topic, TopicPlan], derived: Mapping[str, DerivedTopic]
) -> tuple[StreamPlan, ...]:
    """The streams, each with its shared topics in the order of their numbers, and then its derived topics.
    Watched streams come last, by name: their order in the catalogue depends on when they were first read.
    """
    of: dict[str, list[TopicPlan]] = {name: [] for name in catalog.streams}
    for topic in sorted(topics, key=operator.itemgetter(1)):
        of[topic[0][0]].append(topics[topic])
    for one in derived.values():
        of[one.stream.name].append(one.plan)
    watched = sorted(name for name, stream in catalog.streams.items() if stream.base is not None)
    ordered = (*catalog.raw_streams.values(), *(catalog.streams[name] for name in watched))
    return tuple(_stream(stream, tuple(of[stream.name])) for stream in ordered)


def _stream(stream: StreamDef, topics: tuple[TopicPlan, ...]) -> StreamPlan:
    return StreamPlan(
        name=stream.name,
        columns=tuple(
            StreamColumn(column.name, column.type, column.not_null, domain_check(column))
            for column in stream.columns
        ),
        time=stream.time,
        delay=stream.delay,
        idle_timeout=stream.idle_timeout,
        max_ahead=stream.max_ahead,
        max_stall=stream.max_stall,
        topics=topics,
        max_ahead_given=stream.max_ahead_given,
        value_format=stream.value_format,
        base=stream.base,
        series_key=stream.key if stream.base else (),
        watches=stream.watches,
    )


def _topic_with_time(derived: DerivedDef, catalog: Catalog) -> DerivedTopic:
    """Every tuple of the base stream that passes, with the columns of SELECT."""
    verdict = accepted(derived, catalog)
    (omission,) = verdict.omissions
    key = verdict.keys.partition[omission.alias]
    topic = _topic(derived, key, _complete(bare(omission.filter), key))
    return DerivedTopic(derived, verdict.analysis.streams[omission.alias], topic)


def _topic_without_time(derived: DerivedDef, catalog: Catalog) -> DerivedTopic:
    """The topic of a derived stream without time; its tuples are counted."""
    (feed,) = layout(derived.query, catalog).feeds
    topic = _topic(derived, feed.partition_key, _complete(feed.filter, feed.partition_key), counted=True)
    return DerivedTopic(derived, feed.stream, topic)


def _complete(filter_: Expr | None, key: tuple[str, ...]) -> Entry:
    """An entry without omission, which serves no numbered version."""
    return Entry(filter_, omission_key=key, value=None, interval=0, sides="both", max_delay=None, serves=0)


def _topic(derived: DerivedDef, key: tuple[str, ...], entry: Entry, *, counted: bool = False) -> TopicPlan:
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    return TopicPlan(outside_topic(derived.name, 1), key, (), (entry,), select, counted=counted)

"""The plan of a draft of the state, with the statistics by which new readers choose topics, and with schemas.

New statistics are adopted only when a query is added, and only if they differ from the present ones. Schemas
of new topics are registered in the schema registry.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from tamis.declarations.streams import StreamDef
from tamis.errors import RefusedError
from tamis.messaging.schemas.schema_texts import schema_text
from tamis.messaging.schemas.tuple_schema import ValueSchema, check_names, layout
from tamis.messaging.schemas.wire_format import KINDS, Kind
from tamis.messaging.topics import stream_of
from tamis.persistent.lists import PersistentList
from tamis.plan.model import Plan, StandingQuery, StreamPlan, TopicPlan
from tamis.planning.incremental import Built
from tamis.planning.topic_readers import ReaderSource
from tamis.predicates.sketch import Observed
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.plan import shared_topics
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import State, TopicSchema

Register = Callable[[str, Kind, str], int]
"""Registers a schema, given by its subject, kind and text; returns its number. May raise TamisError."""


def check_stream(stream: StreamDef, register: Register | None) -> None:
    """Raises RefusedError if a new stream has a format that this fleet has no schema registry for, or columns
    that the format can't have.
    """
    if stream.value_format == "json":
        return
    if register is None:
        raise RefusedError(
            f"value_format = '{stream.value_format}' needs a schema registry, and none is configured",
            where=f"stream {stream.name}",
            hint="set TAMIS_SCHEMA_REGISTRY_URL where the registry starts, or use value_format = 'json'",
        )
    check_names(tuple((column.name, column.type) for column in stream.columns), f"stream {stream.name}")


def with_schemas(built: Built, draft: State, register: Register | None) -> Built:
    """The plan with the schemas of all topics. Those of new topics are registered, and stored in the draft.

    Raises TamisError if the schema registry doesn't answer or refuses a schema.
    """
    if all(stream.value_format == "json" for stream in built.plan.streams):
        return built
    streams = tuple(_with_schemas(stream, draft, register) for stream in built.plan.streams)
    return replace(built, plan=replace(built.plan, streams=streams))


def _with_schemas(stream: StreamPlan, draft: State, register: Register | None) -> StreamPlan:
    if stream.value_format == "json":
        return stream
    topics = tuple(_with_schema(stream, topic, draft, register) for topic in stream.topics)
    return replace(stream, topics=topics)


def _with_schema(stream: StreamPlan, topic: TopicPlan, draft: State, register: Register | None) -> TopicPlan:
    if topic.partials is not None and topic.name not in draft.schemas:
        return topic  # partial aggregates are JSON, and no tuples were ever published to it
    columns, where = layout(stream, topic), f"topic {topic.name}"
    check_names(columns, where)
    text = schema_text(stream_of(topic.name) or stream.name, columns, stream.value_format)
    digest = zlib.crc32(text.encode())
    known = draft.schemas.get(topic.name)
    # The topic of a derived stream that is dropped and made again has the same name.
    if known is None or known.digest != digest:
        if register is None:
            raise RefusedError(
                "its schema can't be registered: no schema registry is configured",
                where=where,
                hint="set TAMIS_SCHEMA_REGISTRY_URL where the registry starts",
            )
        number = register(f"{topic.name}-value", KINDS[stream.value_format], text)
        schema = ValueSchema(stream.value_format, number, len(columns))
        known = draft.schemas[topic.name] = TopicSchema(schema, digest)
    return replace(topic, schema=known.schema.number)


# Two samples of 512 rows of one distribution differ by more than half of this only once in twenty times.
CHANCE = 0.17


def take_up(draft: State, seen: FleetReports) -> None:
    """Adopt the statistics of streams whose readings have changed."""
    for stream in draft.catalog.streams.keys() & seen.sketches.keys():
        new, known = seen.statistics(stream), draft.statistics.get(stream)
        if new is not None and _differ(stream, known, new, seen):
            draft.statistics[stream] = new


def _differ(stream: str, known: StreamStatistics | None, new: StreamStatistics, seen: FleetReports) -> bool:
    """`news`, cached for the same statistics, because it is called for every new query."""
    last = seen.compared.get(stream)
    if last is None or last[0] is not known or last[1] is not new:
        last = seen.compared[stream] = known, new, news(known, new)
    return last[2]


def news(known: StreamStatistics | None, new: StreamStatistics) -> bool:
    """True if the distribution of some attribute differs by more than can be chance."""
    if known is None or known.attributes.keys() != new.attributes.keys():
        return True
    return any(distance(known.attributes[name], found) > CHANCE for name, found in new.attributes.items())


def distance(one: Observed, other: Observed) -> float:
    """The Kolmogorov distance of two distributions, or the difference of their NULL shares if that is
    greater.
    """
    shares = []
    ends = np.unique(np.concatenate([np.asarray(o.values, np.float64) for o in (one, other)]))
    for observed in (one, other):
        count = max(len(observed.values), 1)
        below = np.searchsorted(np.asarray(observed.values, np.float64), ends, "right") / count
        shares.append(observed.null + (1 - observed.null) * below)
    nulls = abs(one.null - other.null)
    return max(nulls, float(np.abs(shares[0] - shares[1]).max(initial=0.0)))


def plan_draft(
    planner: Planner,
    draft: State,
    n: int,
    before: Built | None,
    *,
    partials: Collection[str] | None,
    representatives: int | None = None,
) -> Built:
    """The plan `n` of a draft; the draft gets the new topics and their readers. `partials`: as in
    `plan_for`. `representatives`: as in `StreamPlan`.
    """
    listed = {name: shard for name, shard in draft.shards.items() if shard.since is not None}

    def sources() -> PersistentList[ReaderSource]:
        found: PersistentList[ReaderSource] = PersistentList(draft.retiring.value_list)
        return found.followed_by(draft.statements.value_list, draft.leases.value_list)

    # An old definition reads the watched streams that it was made with.
    old = [retiring.definition for retiring in draft.retiring.values() if retiring.definition]
    built = planner.build(
        n,
        draft.catalog.reading(*old),
        sources(),
        partitions=draft.partitions,
        topic_numbers=shared_topics.numbers(draft),
        outside={stream: known.outside for stream, known in draft.topics.items()},
        retiring={reader: one.successor for reader, one in draft.retiring.items() if one.definition},
        since={name: shard.since for name, shard in listed.items() if shard.since is not None},
        shard_streams={name: shard.stream for name, shard in listed.items()},
        statistics=draft.statistics,
        derived_numbers=shared_topics.derived_numbers(draft),
        partials=partials,
        aggregated=shared_topics.aggregated(draft),
        before=before,
    )
    anew = {name: known.anew for name, known in draft.topics.items() if known.anew}
    represented = frozenset(s.name for s in built.plan.streams if _is_represented(s))
    plan = _without_representations(built.plan) if represented and representatives is None else built.plan
    streams = tuple(
        replace(s, anew=anew.get(s.shards_of, 0), representatives=representatives if known else None)
        if (known := s.name in represented) or anew
        else s
        for s in plan.streams
    )
    built = replace(built, plan=replace(plan, streams=streams), represented=represented)
    shared_topics.remember(draft, built)
    return built.with_sources(sources()) if built.assigned else built


def _is_represented(stream: StreamPlan) -> bool:
    """True if edges can publish representatives of the stream to some topic."""
    return any(entry.representation is not None for topic in stream.topics for entry in topic.entries)


def _without_representations(plan: Plan) -> Plan:
    """The plan for services of which some can't read representations: edges publish every tuple."""

    def topic(one: TopicPlan) -> TopicPlan:
        entries = dict.fromkeys(replace(entry, representation=None) for entry in one.entries)
        return replace(one, entries=tuple(entries))

    def query(one: StandingQuery) -> StandingQuery:
        return replace(one, inputs=tuple(replace(source, representation=None) for source in one.inputs))

    streams = tuple(
        replace(s, topics=tuple(map(topic, s.topics))) if _is_represented(s) else s for s in plan.streams
    )
    return replace(plan, streams=streams, standing=tuple(map(query, plan.standing)))

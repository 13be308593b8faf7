"""A compiled plan: its topics, compiled filters, joins and their partners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from tamis.errors import InputError
from tamis.evaluation.existence import tests_existence
from tamis.evaluation.filter_dispatch import Dispatch
from tamis.expressions.nodes import Expr, Type
from tamis.identity_cache import IdentityCache
from tamis.messaging.schemas.tuple_schema import Layout, layout
from tamis.plan.json_form import decode_plan
from tamis.plan.model import Input, Plan, StreamPlan, TopicPlan
from tamis.plan.omission import bare
from tamis_joiner.core.plan.compiled_join import CompiledJoin
from tamis_joiner.core.plan.join_partners import join_partners
from tamis_joiner.core.plan.missing_functions import functions_called
from tamis_joiner.core.plan.retention_groups import (
    RetentionGroup,
    retention_groups,
    slice_width,
)
from tamis_joiner.core.records.tuple_columns import Schema

Columns = tuple[tuple[str, Type], ...]
Filters = dict[str, list[Expr | None]]  # by topic


@dataclass(frozen=True)
class Topic:
    """A topic of the plan and its readers.

    `time` is the column with the event time, empty if the stream has none. `joined`: the topic has readers
    that are joins, whose filters are in `dispatch`. `counted`: it has readers that are standing queries,
    whose filters are in `counting`. The state stores the topic's tuples in slices of event time; `width` is
    the length of a slice in microseconds. `fields`: the names of columns in the values of a derived
    stream's topic; empty if they are the columns' own.
    """

    name: str
    stream: str
    time: str
    key: tuple[str, ...]
    schema: Schema
    dispatch: Dispatch
    counting: Dispatch
    retention: list[RetentionGroup]
    width: int
    joined: bool = True
    counted: bool = False
    layout: Layout | None = None  # the columns of the schema of its values; None for JSON
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """The prefix of the names of the topic's slices in the state. Slices of another length have another
        prefix.
        """
        return f"slice/{self.name}/{self.width}/"


@dataclass(frozen=True)
class CompiledPlan:
    """A plan with its topics by name, its joins, for each topic the topics that it is joined with, and for
    each alert the names of the Python functions that it calls.
    """

    plan: Plan
    topics: dict[str, Topic]
    joins: tuple[CompiledJoin, ...]
    partners: Mapping[str, frozenset[str]]
    functions: Mapping[str, tuple[str, ...]]

    @cached_property
    def tests_existence(self) -> bool:
        """True if some join has EXISTS or NOT EXISTS."""
        return any(tests_existence(join.definition) for join in self.joins)


# All partitions of a process use the same plan or the previous one. Three are enough, and a plan of thousands
# of alerts has many megabytes.
@lru_cache(maxsize=3)
def compile_plan(document: bytes) -> CompiledPlan:
    """The plan that `encode_plan` wrote, compiled. Raises InputError with the mistake and its place."""
    plan = decode_plan(document)
    try:
        topics, joins = _topics(plan)
    except KeyError as error:
        # Each part of the plan can be read, but one names a topic, stream or column that no other part has.
        raise InputError(
            f"the plan names {error}, which it doesn't contain", where=f"plan {plan.version}"
        ) from None
    return CompiledPlan(plan, topics, joins, join_partners(plan), functions_called(plan))


def _topics(plan: Plan) -> tuple[dict[str, Topic], tuple[CompiledJoin, ...]]:
    """The topics by name, and the joins. Topics of derived streams that no alert reads are left out: their
    tuples are for readers outside the fleet.
    """
    joined: Filters = {}
    for definition in plan.definitions:
        for source in definition.inputs:
            joined.setdefault(source.topic, []).append(_bare(source))
    counted: Filters = {}
    for query in plan.standing:
        for source in query.inputs:
            counted.setdefault(source.topic, []).append(source.filter)
    pairs = [
        (stream, topic)
        for stream in plan.streams
        for topic in stream.topics
        if not topic.select or topic.name in joined
    ]
    schemas = {topic.name: _schema(stream, topic) for stream, topic in pairs}
    dispatches, counting = _JOINED.compile(schemas, joined), _COUNTED.compile(schemas, counted)
    joins = tuple(
        CompiledJoin(
            definition,
            tuple(
                (source.topic, dispatches[source.topic].row(_bare(source))) for source in definition.inputs
            ),
        )
        for definition in plan.definitions
    )
    groups = retention_groups(joins)
    topics = {
        topic.name: Topic(
            name=topic.name,
            stream=stream.name,
            time=stream.time or "",
            key=topic.partition_key,
            schema=schemas[topic.name],
            dispatch=dispatches[topic.name],
            counting=counting[topic.name],
            retention=groups.get(topic.name, []),
            width=slice_width(groups.get(topic.name, [])),
            joined=topic.name in joined,
            counted=topic.counted,
            layout=None if topic.schema is None else layout(stream, topic),
            fields=topic.fields,
        )
        for stream, topic in pairs
    }
    return topics, joins


def _schema(stream: StreamPlan, topic: TopicPlan) -> Schema:
    types = {column.name: column.type for column in stream.columns}
    time = () if stream.time is None else (stream.time,)
    return {name: types[name] for name in dict.fromkeys((*topic.partition_key, *time, *topic.columns))}


def _bare(source: Input) -> Expr | None:
    """The filter of an input without its alias; the same object each time."""
    return None if source.filter is None else _BARE.one(source.filter, partial(bare, source.filter))


_BARE = IdentityCache[Expr]()


class FilterCompiler:
    """Compiles the filters of each topic. Most filters of a plan are those of the previous plan and are
    reused.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, Columns], Dispatch] = {}

    def compile(self, schemas: Mapping[str, Schema], filters: Filters) -> dict[str, Dispatch]:
        """The compiled filters by topic. If the columns of a topic have changed, all of its filters are
        compiled again.
        """
        # The result is complete before it is stored, so that two threads may compile at the same time.
        before, compiled = self._latest, {}
        for name, schema in schemas.items():
            key = name, tuple(schema.items())
            compiled[key] = Dispatch(filters.get(name, ()), before.get(key))
        self._latest = compiled
        return {name: dispatch for (name, _), dispatch in compiled.items()}


_JOINED, _COUNTED = FilterCompiler(), FilterCompiler()

"""What a plan says of a topic: the columns of its tuples, who needs them, how they are cut into slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from tamis.evaluation.dispatch import Dispatch
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.opaque import calls, name_of
from tamis.planning.omission import bare
from tamis.planning.plan import Definition, Input, Plan, StreamPlan, TopicPlan
from tamis.planning.plan_json import decode_plan
from tamis.planning.remembered import MOST, Remembered
from tamis_joiner.core.decode import Schema
from tamis_joiner.core.frontiers import partners
from tamis_joiner.core.join import Join
from tamis_joiner.core.retention import Uses, slice_width, uses

Columns = tuple[tuple[str, Type], ...]
Filters = dict[str, list[Expr | None]]  # by topic


@dataclass(frozen=True)
class Topic:
    """A topic of the plan. `time` is empty where its stream has none; `dispatch` has the filters of the
    definitions that read it, `counting` those of standing queries; `joined`, `counted`: there are such;
    `width` is that of its time slices in microseconds.
    """

    name: str
    stream: str
    time: str
    key: tuple[str, ...]
    schema: Schema
    dispatch: Dispatch
    counting: Dispatch
    uses: list[Uses]
    width: int
    joined: bool = True
    counted: bool = False

    @property
    def prefix(self) -> str:
        """How the names of its slices begin: slices of another width are others."""
        return f"slice/{self.name}/{self.width}/"


def _topics(plan: Plan) -> tuple[dict[str, Topic], tuple[Join, ...]]:
    """The topics of the plan's streams by name, without those of derived streams, whose tuples are for
    readers outside and have columns of their own; and the joins of its definitions.
    """
    joined: Filters = {}
    for definition in plan.definitions:
        for source in definition.inputs:
            joined.setdefault(source.topic, []).append(_bare(source))
    counted: Filters = {}
    for query in plan.standing:
        for source in query.inputs:
            counted.setdefault(source.topic, []).append(source.filter)
    schemas = {
        topic.name: _schema(stream, topic)
        for stream in plan.streams
        for topic in stream.topics
        if not topic.select
    }
    dispatches, counting = _JOINED.of(schemas, joined), _COUNTED.of(schemas, counted)
    joins = tuple(
        Join(definition, tuple((s.topic, dispatches[s.topic].row(_bare(s))) for s in definition.inputs))
        for definition in plan.definitions
    )
    by_topic = uses(joins)
    topics = {
        topic.name: Topic(
            topic.name,
            stream.name,
            stream.time or "",
            topic.partition_key,
            schemas[topic.name],
            dispatches[topic.name],
            counting[topic.name],
            by_topic.get(topic.name, []),
            slice_width(by_topic.get(topic.name, [])),
            topic.name in joined,
            topic.counted,
        )
        for stream in plan.streams
        for topic in stream.topics
        if not topic.select
    }
    return topics, joins


def _schema(stream: StreamPlan, topic: TopicPlan) -> Schema:
    types = {column.name: column.type for column in stream.columns}
    time = () if stream.time is None else (stream.time,)
    return {name: types[name] for name in dict.fromkeys((*topic.partition_key, *time, *topic.columns))}


def _bare(source: Input) -> Expr | None:
    """The filter of an input as one over its topic, the same object each time."""
    return None if source.filter is None else _BARE.one(source.filter, partial(bare, source.filter))


_BARE = Remembered[Expr](MOST)


class _Latest:
    """Filters as they were compiled for the plan before, from which most of the next plan's are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Columns], Dispatch] = {}

    def of(self, schemas: Mapping[str, Schema], filters: Filters) -> dict[str, Dispatch]:
        """By topic. The filters of a topic whose columns have changed are compiled anew."""
        before, self._known = self._known, {}
        for name, schema in schemas.items():
            which = name, tuple(schema.items())
            self._known[which] = Dispatch(filters.get(name, ()), before.get(which))
        return {name: dispatch for (name, _), dispatch in self._known.items()}


_JOINED, _COUNTED = _Latest(), _Latest()


@dataclass(frozen=True)
class Scheme:
    """A plan, and what follows from it alone: its topics, the joins of its definitions, the topics that each
    is joined with, and the functions of Python that each alert calls.
    """

    plan: Plan
    topics: dict[str, Topic]
    joins: tuple[Join, ...]
    partners: Mapping[str, frozenset[str]]
    calling: Mapping[str, tuple[str, ...]]


# All partitions of a process obey the same plan, or the one before, and read it again where nothing is
# remembered. One of thousands of alerts is many megabytes.
@lru_cache(maxsize=3)
def scheme_of(document: bytes) -> Scheme:
    """The plan that `encode_plan` wrote. Raises InputError with the place of what is wrong."""
    plan = decode_plan(document)
    topics, joins = _topics(plan)
    calling = {definition.alert: _functions(definition) for definition in plan.definitions}
    return Scheme(
        plan, topics, joins, partners(plan), {alert: some for alert, some in calling.items() if some}
    )


def _functions(definition: Definition) -> tuple[str, ...]:
    return _FUNCTIONS.one(definition, partial(_called, definition))


# Most definitions are the same objects in the next plan.
_FUNCTIONS = Remembered[tuple[str, ...]](MOST)


def _called(definition: Definition) -> tuple[str, ...]:
    selected = [expr for _, expr in definition.select]
    filters = [source.filter for source in definition.inputs]
    return tuple(sorted({name_of(call) for call in calls(definition.condition, *filters, *selected)}))

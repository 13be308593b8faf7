"""A plan compiled for evaluation, once for all partitions of a process.

It has the topics with their compiled filters and the joins, for each topic the topics that it is joined with,
and the Python functions that alerts call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.errors import InputError
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.python_functions import FunctionError, calls, installed, name_of
from tamis.identity_cache import IdentityCache
from tamis.messaging.schemas.tuple_schema import Layout, layout
from tamis.operators.time_join.existence import tests_existence
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.operators.time_join.time_bounds import UNBOUNDED, reaches
from tamis.plan.json_form import decode_plan
from tamis.plan.model import Definition, Input, Plan, StreamPlan, TopicPlan
from tamis.plan.omission import bare
from tamis_joiner.core.records.tuple_columns import Schema

# Most definitions are the same objects in the next plan.
_FUNCTIONS = IdentityCache[tuple[str, ...]]()

SECOND = 1_000_000

# A batch rewrites the slices that it adds tuples to, so a slice should hold a small part of a topic's tuples.
# More slices than these would make the index in `meta` long.
SLICES = 8

# (partner's topic, microseconds) as in `time_bounds.reaches`, and the windows of a definition.
_Reach = tuple[tuple[tuple[str, int], ...], Window | None]

Columns = tuple[tuple[str, Type], ...]
Filters = dict[str, list[Expr | None]]  # by topic


def join_partners(plan: Plan | None) -> dict[str, frozenset[str]]:
    """By topic, the other topics that some query of the plan joins it with; only topics with event time."""
    found: dict[str, set[str]] = {}
    for definition in plan.queries if plan else ():
        topics = {source.topic for source in definition.inputs if source.time}
        for topic in topics:
            found.setdefault(topic, set()).update(topics)
    return {topic: frozenset(others - {topic}) for topic, others in found.items()}


def functions_called(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The names of the functions that each alert calls, for the alerts that call any."""
    found = {definition.alert: _functions(definition) for definition in plan.definitions}
    return {alert: names for alert, names in found.items() if names}


def missing_functions(called: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """By alert, an error that names a function which isn't installed, and the remedy. `called`: the result of
    `functions_called`.
    """
    found = {}
    for alert, names in called.items():
        for name in names:
            try:
                installed(name)
            except FunctionError as error:
                found[alert] = str(error)
    return found


def _functions(definition: Definition) -> tuple[str, ...]:
    return _FUNCTIONS.one(definition, partial(_find, definition))


def _find(definition: Definition) -> tuple[str, ...]:
    selected = [expr for _, expr in definition.select]
    filters = [source.filter for source in definition.inputs]
    conditions = [definition.condition, *(absence.condition for absence in definition.absences)]
    return tuple(sorted({name_of(call) for call in calls(*conditions, *filters, *selected)}))


@dataclass(frozen=True)
class CompiledJoin:
    """A definition. For each of its inputs, `inputs` has the topic and the row of the input's filter among
    the topic's compiled filters.
    """

    definition: Definition
    inputs: tuple[tuple[str, int], ...]

    @cached_property
    def name(self) -> str:
        """The definition's name in plans and frontier records."""
        return f"{self.definition.alert}@{self.definition.version}"

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics that it reads."""
        return frozenset(topic for topic, _ in self.inputs)


@dataclass(frozen=True)
class RetentionGroup:
    """Inputs of definitions over one topic that need a tuple for the same time.

    `reach` has (partner's topic, microseconds): a tuple is needed until the partner's frontier is that far
    past it. `names` ("alert@version"), `versions` and `rows` are parallel: the definitions, and the rows of
    the inputs' filters in the topic's dispatch.
    """

    reach: tuple[tuple[str, int], ...]
    window: Window | None
    names: tuple[str, ...]
    versions: NDArray[np.int64]
    rows: NDArray[np.int64]


def retention_groups(joins: Iterable[CompiledJoin]) -> dict[str, list[RetentionGroup]]:
    """By topic, the groups of the inputs that may need its tuples later."""
    found: dict[str, dict[_Reach, list[tuple[str, int, int]]]] = {}
    for join in joins:
        definition = join.definition
        for (topic, row), reach in zip(join.inputs, reaches(definition), strict=True):
            if reach:
                by_topic = tuple((join.inputs[partner][0], most) for partner, most in reach)
                group = found.setdefault(topic, {}).setdefault((by_topic, definition.window), [])
                group.append((join.name, definition.version, row))
    return {
        topic: [
            RetentionGroup(
                reach,
                window,
                tuple(name for name, _, _ in group),
                np.array([version for _, version, _ in group], np.int64),
                np.array([row for _, _, row in group], np.int64),
            )
            for (reach, window), group in groups.items()
        ]
        for topic, groups in found.items()
    }


def slice_width(groups: Sequence[RetentionGroup]) -> int:
    """The width of a topic's time slices in microseconds, from how long its tuples are needed."""
    longest = max((abs(most) for group in groups for _, most in group.reach if most < UNBOUNDED), default=0)
    return max(SECOND, 2 * longest // SLICES)


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

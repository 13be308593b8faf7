"""What a plan says of a topic: the columns of its tuples, who needs them, how they are cut into slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from tamis.expressions.opaque import calls, name_of
from tamis.planning.plan import Definition, Plan
from tamis.planning.plan_json import decode_plan
from tamis.planning.remembered import MOST, Remembered
from tamis_joiner.core.decode import Schema
from tamis_joiner.core.frontiers import partners
from tamis_joiner.core.retention import Use, slice_width, uses


@dataclass(frozen=True)
class Topic:
    """A topic of the plan. `time` is empty where its stream has none; `joined`: a definition reads it,
    `counted`: a standing query does; `width` is that of its time slices in microseconds.
    """

    name: str
    stream: str
    time: str
    key: tuple[str, ...]
    schema: Schema
    uses: list[Use]
    width: int
    joined: bool = True
    counted: bool = False

    @property
    def prefix(self) -> str:
        """How the names of its slices begin: slices of another width are others."""
        return f"slice/{self.name}/{self.width}/"


def topics_of(plan: Plan) -> dict[str, Topic]:
    """The topics of the plan's streams by name, without those of derived streams, whose tuples are for
    readers outside and have columns of their own.
    """
    by_topic = uses(plan)
    joined = {source.topic for definition in plan.definitions for source in definition.inputs}
    found = {}
    for stream in plan.streams:
        types = {column.name: column.type for column in stream.columns}
        for topic in stream.topics:
            if topic.select:
                continue
            time = () if stream.time is None else (stream.time,)
            names = dict.fromkeys((*topic.partition_key, *time, *topic.columns))
            mine = by_topic.get(topic.name, [])
            found[topic.name] = Topic(
                topic.name,
                stream.name,
                stream.time or "",
                topic.partition_key,
                {name: types[name] for name in names},
                mine,
                slice_width(mine),
                topic.name in joined,
                topic.counted,
            )
    return found


@dataclass(frozen=True)
class Scheme:
    """A plan, and what follows from it alone: its topics, the topics that each is joined with, and the
    functions of Python that each alert calls.
    """

    plan: Plan
    topics: dict[str, Topic]
    partners: Mapping[str, frozenset[str]]
    calling: Mapping[str, tuple[str, ...]]


# All partitions of a process obey the same plan, and each reads it again where it remembers nothing.
@lru_cache(maxsize=8)
def scheme_of(document: bytes) -> Scheme:
    """The plan that `encode_plan` wrote. Raises InputError with the place of what is wrong."""
    plan = decode_plan(document)
    calling = {definition.alert: _functions(definition) for definition in plan.definitions}
    return Scheme(
        plan, topics_of(plan), partners(plan), {alert: some for alert, some in calling.items() if some}
    )


def _functions(definition: Definition) -> tuple[str, ...]:
    return _FUNCTIONS.one(definition, partial(_called, definition))


# Most definitions are the same objects in the next plan.
_FUNCTIONS = Remembered[tuple[str, ...]](MOST)


def _called(definition: Definition) -> tuple[str, ...]:
    selected = [expr for _, expr in definition.select]
    filters = [source.filter for source in definition.inputs]
    return tuple(sorted({name_of(call) for call in calls(definition.condition, *filters, *selected)}))

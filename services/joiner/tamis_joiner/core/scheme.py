"""What a plan says of a topic: the columns of its tuples, who needs them, how they are cut into slices."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.planning.plan import Plan
from tamis_joiner.core.decode import Schema
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

"""Types of the document about the joiner. Event times are microseconds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

_TUPLES = Field(description="Retained tuples in its state")


class JoinerPartition(TypedDict):
    """One output partition, as the joiner reported it last."""

    partition: int
    plan: Annotated[int, Field(description="The plan version that it uses")]
    time: Annotated[int, Field(description="When it was reported, by the joiner's clock, in microseconds")]
    frontier: Annotated[
        int | None, Field(description="Alarms below this event time are complete; null if not known yet")
    ]
    tuples: Annotated[int, _TUPLES]
    bytes: int
    parked: Annotated[int, Field(description="Records that wait for a newer plan")]


class SlowestShard(TypedDict):
    """The listed shard with the least watermark."""

    shard: str
    watermark: int


class JoinerTopic(TypedDict):
    """A topic over all partitions."""

    topic: str
    stream: str
    frontier: Annotated[int | None, Field(description="The least one; null until each partition has one")]
    tuples: Annotated[int, _TUPLES]
    bytes: int
    slowest: Annotated[
        SlowestShard | None,
        Field(description="The shard that holds the frontier back, if edges tell; null if the joiner hangs"),
    ]
    why: Annotated[list[str], Field(description="Reasons why its frontier may not move on")]


class JoinerDefinition(TypedDict):
    """A definition of an alert. A replaced alert has two for a while."""

    definition: Annotated[str, Field(description="As `alert@version`")]
    alert: str
    live: Annotated[int, Field(description="Live tuples or entries of synopses, over all partitions")]
    bound: Annotated[int | None, Field(description="Their proven bound; null without a number")]
    bytes: int
    alarms: Annotated[int, Field(description="Of the alert, since the beginning of the joiner's state")]
    missed: Annotated[int, Field(description="Tuples that came too late to count for it")]


class Joiner(TypedDict):
    """The joiner, from its newest report of each output partition and its heartbeats."""

    state: Annotated[
        Literal["running", "behind", "silent", "unknown"],
        Field(description="`silent`: it has reported nothing for longer than its heartbeats explain"),
    ]
    why: Annotated[list[str], Field(description="Why it is silent or behind; empty if it isn't")]
    reported_ago: Annotated[
        int | None, Field(description="Seconds since its newest report; null if there is none")
    ]
    process: Annotated[
        str | None, Field(description="Its process and host; null if a joiner of an earlier release runs")
    ]
    plan: Annotated[int, Field(description="The plan version that all partitions use; 0 if not known")]
    partitions: list[JoinerPartition]
    topics: list[JoinerTopic]
    definitions: list[JoinerDefinition]
    late: Annotated[int, Field(description="Late tuples so far")]
    parked: Annotated[int, Field(description="Records that wait for a newer plan")]
    dead: Annotated[dict[str, int], Field(description="Dead letters so far, by reason")]

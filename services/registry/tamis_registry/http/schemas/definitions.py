"""Types of the documents about alerts, streams, edges, patterns and plans. Event times are microseconds."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

_FILTER = Field(description="A condition as SQL; null: every tuple")
_INTERVAL = Field(description="The omission interval; 0 without omission")
_MAX_DELAY = Field(
    description="How long edges wait at most before they decide; null: as long as they need. 0: they decide "
    "at once and omit nothing"
)


class TopicReader(TypedDict):
    """An alert, for each of its sources that reads the topic, or a subscriber."""

    kind: Literal["alert", "subscriber"]
    name: Annotated[str, Field(description="Of a subscriber, the consumer")]
    plan: Annotated[int, Field(description="The plan version that made the reader")]
    retiring: Annotated[bool, Field(description="True for a replaced definition that still runs")]
    source: Annotated[str | None, Field(description="The alias in FROM; null if it has none")]
    filter: Annotated[str | None, _FILTER]
    interval: Annotated[int, _INTERVAL]
    max_delay: Annotated[int | None, _MAX_DELAY]
    needs_all: Annotated[
        str | None,
        Field(description="Why it needs every tuple that passes its filter; null if some may be omitted"),
    ]


class TopicEntry(TypedDict):
    """A rule by which edges publish to the topic. A tuple that one entry retains is published."""

    filter: Annotated[str | None, _FILTER]
    key: Annotated[list[str], Field(description="The columns whose values have brackets of their own")]
    value: Annotated[str | None, Field(description="What omission compares, as SQL; null without omission")]
    sides: Annotated[
        Literal["both", "above", "below"] | None,
        Field(
            description="`above`: a tuple between two higher ones is omitted; `below`: between two "
            "lower ones; `both`: if it is between both; null without omission"
        ),
    ]
    interval: Annotated[int, _INTERVAL]
    max_delay: Annotated[int | None, _MAX_DELAY]
    representatives: Annotated[
        str | None,
        Field(description="What edges keep of the tuples of which they publish representatives; else null"),
    ]


class SharedTopic(TypedDict):
    """A topic of a stream."""

    topic: str
    derived: Annotated[str | None, Field(description="The derived stream whose rows it has; else null")]
    key: Annotated[list[str], Field(description="The columns of the record key")]
    columns: Annotated[list[str], Field(description="The columns of its tuples besides key and time")]
    entries: list[TopicEntry]
    readers: list[TopicReader]


_WHY = Field(description="Reasons, for people; empty if there is nothing to say")
_PLAN_OF = Field(description="The plan version that made the present definition")
_SQL = Field(description="The statement in force")

AlertState = Literal["starting", "running", "degraded", "paused", "refused"]
ShardState = Literal["waiting", "active", "behind", "away", "gone", "unused", "ended"]


_TUPLES = Field(
    description="Readings by decision (published, omitted, filtered, late, dead) since the edge began to "
    "serve them; null if no edge has told"
)
_RATES = Field(description="The same a second, over the last 10 to 20 s; null if not known yet")


class Activation(TypedDict):
    """Since when a shard serves a definition."""

    plan: int
    event_time: Annotated[int, Field(description="Microseconds; of a stream without time, a place")]


class ShardHistory(TypedDict):
    """Where a shard began to read for an alert with earlier readings."""

    first_offset: int | None
    event_time: int | None


# In this form since a member is called "from", a keyword of Python.
AlertHistory = TypedDict(
    "AlertHistory",
    {"from": int | Literal["earliest"], "event_time": int | None, "shards": dict[str, ShardHistory]},
)


class Alert(TypedDict):
    """An alert: its state, and why."""

    name: str
    state: AlertState
    why: Annotated[list[str], _WHY]
    plan: Annotated[int, _PLAN_OF]
    streams: Annotated[list[str], Field(description="The raw streams that it reads")]
    bound: Annotated[
        int | None, Field(description="The proven bound on live tuples or entries; null without a number")
    ]
    live: Annotated[int, Field(description="Live tuples or entries, as the joiner reported last")]
    unproven: Annotated[bool, Field(description="True if omission for it rests on something not proved")]
    activations: Annotated[dict[str, Activation], Field(description="By shard")]
    retiring: Annotated[
        dict[str, str], Field(description="Replaced definitions that still run, with the reason")
    ]
    history: NotRequired[AlertHistory]
    sql: Annotated[str, _SQL]


class SourceTopic(TypedDict):
    """The topic that serves a source of an alert, with all of its readers. Edges publish to it what one of
    them needs.
    """

    source: Annotated[str | None, Field(description="The alias in FROM; null if it has none")]
    stream: Annotated[str, Field(description="The raw stream")]
    topic: str
    readers: list[TopicReader]


class WholeAlert(Alert):
    """An alert with the topics that serve its sources."""

    times: Annotated[list[str], Field(description="The columns of its rows that are times")]
    key_times: Annotated[
        list[int],
        Field(description="Positions of the values in the keys of its alarms that are times; from 0"),
    ]
    sharing: list[SourceTopic]


class Recent(TypedDict):
    """Readings by decision within the last minutes."""

    seconds: Annotated[int, Field(description="The time within which they came, 600 at most")]
    tuples: dict[str, int]


class Shard(TypedDict):
    """A source of an edge for one stream."""

    shard: str
    stream: str
    edge: str
    state: ShardState
    why: Annotated[str, Field(description="The reason for the state; may be empty")]
    doubts: Annotated[
        list[str],
        Field(description="What is doubtful about its newest readings: columns without a value, wrong times"),
    ]
    plan: Annotated[int | None, Field(description="The plan version that it obeys")]
    activation: Annotated[int | None, Field(description="The event time from which it obeys it")]
    watermark: Annotated[
        int | None, Field(description="Event time before which readings are late, as the edge reported last")
    ]
    tuples: Annotated[dict[str, int] | None, _TUPLES]
    rates: Annotated[dict[str, float] | None, _RATES]
    recent: Annotated[
        Recent | None,
        Field(description="Readings of the last 5 to 10 minutes, or since the edge began; null if not known"),
    ]


class Subscriber(TypedDict):
    """A reader outside the fleet."""

    id: str
    consumer: str
    topic: str
    filter: Annotated[str | None, Field(description="Its predicate as SQL; null: every tuple")]
    plan: int
    seconds: int
    expires_in: Annotated[int, Field(description="Seconds until the lease expires")]


class Stream(TypedDict):
    """A stream with its shared topics, readers and shards."""

    name: str
    kind: Literal["raw", "derived"]
    why: Annotated[list[str], _WHY]
    plan: Annotated[int, _PLAN_OF]
    topics: list[str]
    alerts: Annotated[list[str], Field(description="The alerts that read it")]
    subscribers: list[Subscriber]
    tuples: Annotated[dict[str, int] | None, _TUPLES]
    rates: Annotated[dict[str, float] | None, _RATES]
    retained: Annotated[
        float | None, Field(description="The share of usable readings that edges published", ge=0, le=1)
    ]
    shards: list[Shard]
    sql: Annotated[str, _SQL]


class Edge(TypedDict):
    """An edge that has reported, with its shards. It has none before the first reading of its sources."""

    name: str
    state: Annotated[
        ShardState, Field(description="The worst state of its shards; without any, `waiting` or `away`")
    ]
    why: Annotated[list[str], _WHY]
    failing: Annotated[dict[str, str], Field(description="The failing sources, with the reasons")]
    shards: list[Shard]


class Member(TypedDict):
    """One sequence of values of a pattern."""

    name: str
    length: int
    max_gap: Annotated[int | None, Field(description="Microseconds")]


class Pattern(TypedDict):
    """A pattern, or a folder of patterns, without its values."""

    name: str
    kind: Literal["pattern", "folder"]
    why: Annotated[list[str], _WHY]
    plan: Annotated[int, _PLAN_OF]
    members: list[Member]
    readers: Annotated[list[str], Field(description="The queries that compare with it")]


class WholePattern(Pattern):
    """A pattern with its SQL, which has the values."""

    sql: Annotated[str, _SQL]


class PlanSummary(TypedDict):
    """One line about a plan version."""

    version: int
    definitions: Annotated[list[str], Field(description="As `alert@version`")]
    retiring: Annotated[list[str], Field(description="Replaced definitions that still run")]
    topics: list[str]
    shards: int
    made: Annotated[int, Field(description="When it was made, in microseconds")]
    why: Annotated[
        list[str],
        Field(
            description="The first lines of statements, shards that came or went, and further reasons; "
            "empty for plans of earlier releases"
        ),
    ]
    newest: bool


class WholePlan(TypedDict):
    """A plan as the fleet reads it. Its other members depend on `format`; docs/protocol.md has the rules."""

    format: int
    version: int


class Lent(TypedDict):
    """A lease of a topic."""

    id: str
    consumer: str
    seconds: int
    expires_in: Annotated[int, Field(description="Seconds until it expires")]


class StreamTopic(TypedDict):
    """The topic that serves a predicate, and from when each shard publishes to it what the reader needs."""

    stream: str
    topic: str
    partitions: int
    filter: str | None
    plan: int | None
    activations: Annotated[dict[str, Activation], Field(description="By shard")]
    waiting: Annotated[list[str], Field(description="Shards that don't publish to it yet")]
    exists: bool
    value_format: NotRequired[Annotated[str, Field(description="Missing for JSON")]]
    lease: Annotated[Lent | None, Field(description="Null if the request made no lease")]

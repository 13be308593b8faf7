"""Types of the documents that show records of topics, and of the names that an editor completes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict


class TopicRecord(TypedDict):
    """A record of a topic. docs/topics.md has the members of its value."""

    topic: str
    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    value: dict[str, Any]


class HiddenRecord(TypedDict):
    """A record whose value can't be shown, with the reason."""

    topic: str
    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    why: str


class DeadLetter(TypedDict):
    """A record that could not be used, with the reason."""

    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    reason: str
    error: str
    service: str
    source: Annotated[str, Field(description="Where it came from: a topic, a file or a path of HTTP")]
    source_partition: int
    source_offset: int
    edge: Annotated[
        str | None, Field(description="The edge that made it; null for other services and earlier releases")
    ]
    stream: Annotated[
        str | None,
        Field(description="Of a reading: the stream that it was sent to; null for earlier releases"),
    ]
    sink: Annotated[str | None, Field(description="Of a notification: the sink that did not take it")]
    bytes: Annotated[int, Field(description="The length of the original")]
    text: Annotated[str | None, Field(description="Its first 4,096 bytes; null if they are no UTF-8 text")]
    base64: Annotated[str | None, Field(description="The same where `text` is null")]


class Found(TypedDict):
    """Records that were looked at, and those that could not be decoded."""

    complete: Annotated[
        bool,
        Field(
            description="True if all that Kafka keeps was looked through, and nothing that fits is left out"
        ),
    ]
    read: Annotated[int, Field(description="Records that were looked at")]
    unreadable: Annotated[int, Field(description="Records that could not be decoded")]


class Records(Found):
    """The newest records, the newest first."""

    records: list[TopicRecord]
    not_shown: Annotated[
        list[HiddenRecord], Field(description="Of the newest records, those that are missing")
    ]


class DeadLetters(Found):
    """The newest dead letters, the newest first. `reasons` counts those in the answer."""

    records: list[DeadLetter]
    reasons: dict[str, int]


class Column(TypedDict):
    """A column of a stream or a table."""

    name: str
    type: str
    key: bool


class NamedStream(TypedDict):
    """A stream or a table that a query can read."""

    name: str
    kind: Literal["raw", "derived", "table"]
    columns: list[Column]
    time: Annotated[str | None, Field(description="The column of event times; null for streams without time")]


class NamedFunction(TypedDict):
    """A function of the users' own."""

    name: str
    parameters: list[str]
    sql: Annotated[str, Field(description="Its CREATE FUNCTION statement")]


class Names(TypedDict):
    """The names that SQL can use now."""

    streams: list[NamedStream]
    alerts: list[str]
    functions: list[NamedFunction]
    patterns: list[str]
    builtin: Annotated[list[str], Field(description="Functions and aggregates of Tamis")]
    keywords: list[str]

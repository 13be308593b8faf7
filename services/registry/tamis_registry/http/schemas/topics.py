"""Types of the documents about the topics of a stream. Durations are microseconds."""

from __future__ import annotations

from typing import Annotated, Literal

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


class SharedTopic(TypedDict):
    """A topic of a stream."""

    topic: str
    derived: Annotated[str | None, Field(description="The derived stream whose rows it has; else null")]
    key: Annotated[list[str], Field(description="The columns of the record key")]
    columns: Annotated[list[str], Field(description="The columns of its tuples besides key and time")]
    entries: list[TopicEntry]
    readers: list[TopicReader]

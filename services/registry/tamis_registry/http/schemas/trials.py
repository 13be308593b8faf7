"""Types of trials: queries that run on samples of readings."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from tamis.recordings.times import TimeUnit

Value = str | bool | int | float | None


class TrialBody(TypedDict):
    """A text with its samples. Without `samples`, the newest readings in the topics are used."""

    sql: str
    samples: NotRequired[
        Annotated[
            dict[str, list[dict[str, Value]]],
            Field(description="By stream: its readings in the order of their arrival, at most 10,000 in all"),
        ]
    ]
    time_unit: NotRequired[
        Annotated[TimeUnit, Field(description="Of times that are numbers, if it isn't that of the stream")]
    ]


# Its member `from` is a word of Python.
TrialInput = TypedDict(
    "TrialInput",
    {
        "rows": Annotated[int, Field(description="Readings that were used")],
        "retained": Annotated[int, Field(description="Of these, those that edges send for this query alone")],
        "omitted": Annotated[int, Field(description="The others")],
        "refused": Annotated[int, Field(description="Readings that an edge would refuse; they aren't used")],
        "from": Annotated[int | None, Field(description="Least event time in microseconds; null without")],
        "to": Annotated[int | None, Field(description="Greatest event time in microseconds")],
        "source": Annotated[
            Literal["recent", "sent"], Field(description="The newest in the topics, or sent with the request")
        ],
        "complete": Annotated[bool, Field(description="False if the topics have further readings")],
    },
)


class TrialResult(TypedDict):
    """The rows of a query on samples, without the fleet."""

    query: str
    columns: list[str]
    times: Annotated[
        list[str],
        Field(description="Columns that are times: in microseconds, or in the form that was sent"),
    ]
    rows: list[list[Value]]
    row_count: int
    truncated: Annotated[bool, Field(description="True if `rows` has only the first rows")]
    inputs: Annotated[dict[str, TrialInput], Field(description="By stream")]
    note: Annotated[str, Field(description="What the result doesn't say about the query in service")]
    notices: Annotated[list[str], Field(description="About the samples, as `tamis run` writes them")]

"""Types of the documents about silences and open episodes. Times are microseconds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from tamis_registry.http.state.readings import Found

Word = Annotated[str, Field(max_length=255)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Value = Annotated[str, Field(max_length=1000)] | int | Number | bool | None
Comment = Annotated[str, Field(max_length=1000)]
By = Annotated[str, Field(max_length=100, description="Who asks; with a token, its name counts instead")]
Words = Annotated[list[Word], Field(max_length=1000)]
Keys = Annotated[
    list[list[Value]],
    Field(
        max_length=1000,
        description="Keys, each with the values of all key columns; a text may stand for a number",
    ),
]


class SilenceRequest(BaseModel):
    """A silence that is to be made. It needs at least one of `alerts`, `severities`, `labels` and `keys`, and
    either `until` or `seconds`.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    alerts: Words | None = None
    severities: Words | None = None
    labels: Annotated[dict[Word, Words], Field(max_length=100)] = {}
    keys: Keys | None = None
    start: Annotated[int | None, Field(alias="from", description="Microseconds; now where not given")] = None
    until: Annotated[int | None, Field(description="Microseconds")] = None
    seconds: Annotated[float | None, Field(gt=0, le=30 * 86_400, description="In place of `until`")] = None
    comment: Comment = ""
    by: By = ""


class AcknowledgementRequest(BaseModel):
    """An acknowledgement of an episode."""

    model_config = ConfigDict(extra="forbid")

    comment: Comment = ""
    by: By = ""


KeyTimes = Annotated[
    list[int], Field(description="Positions of the values in `key` that are times, in microseconds; from 0")
]

Silence = TypedDict(
    "Silence",
    {
        "id": str,
        "alerts": list[str] | None,
        "severities": list[str] | None,
        "labels": dict[str, list[str]],
        "keys": list[list[Value]] | None,
        "from": int,
        "until": int,
        "by": Annotated[str, Field(description="The name of the token, or what the caller gave without one")],
        "comment": str,
        "made": int,
        "state": Literal["pending", "active", "over"],
        "held_episodes": Annotated[
            int, Field(description="Open episodes whose opening it holds back now, from at least one sink")
        ],
        "held_notifications": Annotated[
            int, Field(description="The openings that it holds back now, one for each of these sinks")
        ],
    },
)


class MadeSilence(Silence):
    """A silence that was just made."""

    warnings: Annotated[
        list[str],
        Field(description="Severities and labels that no alert has, each with the most similar one"),
    ]


class Acknowledgement(TypedDict):
    """Somebody looks after an episode."""

    episode: str
    alert: Annotated[str | None, Field(description="Null if the registry could not look at the episode")]
    key: Annotated[
        list[Value] | None, Field(description="Null as `alert`, and for tokens without `readings: true`")
    ]
    key_times: KeyTimes
    by: str
    comment: str
    made: int
    until: Annotated[int, Field(description="The registry removes it then")]


class OpenEpisode(TypedDict):
    """An episode that has not closed, by its newest event."""

    episode: str
    alert: str
    key: list[Value]
    key_times: KeyTimes
    start: Annotated[int, Field(description="Event time of its first alarm")]
    end: Annotated[int, Field(description="Event time of its latest alarm, as of its newest event")]
    alarms: int
    severity: str | None
    labels: dict[str, str]
    acknowledged: Annotated[Acknowledgement | None, Field(description="Who looks after it; null if nobody")]
    silenced: Annotated[
        int | None, Field(description="The end of the silences that cover it now; null if none does")
    ]


class OpenEpisodes(Found):
    """Every open episode among the events that were looked at, the newest first."""

    episodes: list[OpenEpisode]

"""Types of the document about open episodes. Times are microseconds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from tamis_registry.http.schemas.readings import Found
from tamis_registry.http.schemas.silences import Acknowledgement, KeyTimes, Value


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

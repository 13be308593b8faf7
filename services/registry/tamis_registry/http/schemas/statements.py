"""Types of the answers to applied statements."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from tamis_registry.http.schemas.definitions import Alert, Pattern, Stream
from tamis_registry.http.schemas.explanations import Explanations, Verdict

Result = Literal[
    "created",
    "altered",
    "replaced",
    "unchanged",
    "kept",
    "dropped",
    "paused",
    "resumed",
    "shown",
    "explained",
]


class Replanned(TypedDict):
    """A query that reads a changed stream or function."""

    kind: str
    name: str
    result: Literal["replaced", "kept"]
    verdict: Verdict
    changes: Annotated[list[str], Field(description="Differences that its owner should know")]


class Outcome(TypedDict):
    """The result of one statement."""

    statement: Annotated[str, Field(description="Its kind, as `create alert`")]
    result: Result
    kind: NotRequired[Annotated[str, Field(description="What it defines or drops: `alert`, `stream`, …")]]
    name: NotRequired[str]
    plan: NotRequired[Annotated[int, Field(description="The newest plan version")]]
    where: NotRequired[Annotated[str, Field(description="With `kept`: the place of the statement")]]
    in_service: NotRequired[Annotated[str, Field(description="With `kept`: the definition that stays")]]
    asked: NotRequired[Annotated[str, Field(description="With `kept`: the statement that differs")]]
    replanned: NotRequired[list[Replanned]]
    notices: NotRequired[list[str]]
    verdict: NotRequired[Annotated[Verdict, Field(description="On the memory of a query")]]
    explain: NotRequired[Explanations]
    rows: NotRequired[
        Annotated[
            list[Alert] | list[Stream] | list[Pattern],
            Field(description="With SHOW: what there is after the whole text"),
        ]
    ]

"""Types of the documents about sinks. Times are microseconds since 1970."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict


class Sink(TypedDict):
    """A sink of notifications, over all workers of the alerts service."""

    name: str
    state: Annotated[
        Literal["delivering", "behind", "failing", "silent"],
        Field(
            description="`failing`: it took none at the last attempt. `behind`: one has waited for more than "
            "15 s. `silent`: the alerts service reports nothing"
        ),
    ]
    why: list[str]
    waiting: Annotated[
        int, Field(description="Notifications that it has not taken yet and that will be sent")
    ]
    unread: Annotated[
        int,
        Field(
            description="Events of episodes in Kafka that its queue has not read yet, since many "
            "notifications wait. Not each of them is a notification for this sink"
        ),
    ]
    oldest: Annotated[int | None, Field(description="When the oldest of them was written")]
    error: Annotated[
        str | None, Field(description="Why it took none at the last attempt; never its address or a secret")
    ]

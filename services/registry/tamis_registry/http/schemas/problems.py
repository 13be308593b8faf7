"""Types of problem documents (RFC 9457), the answers to requests that fail."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class Mistake(TypedDict):
    """A mistake in SQL text, at its place."""

    file: NotRequired[Annotated[str, Field(description="The parameter `file` of the request")]]
    line: Annotated[int | None, Field(description="Counted from 1; null if the mistake has no place")]
    column: Annotated[int | None, Field(description="Counted from 1")]
    marked: Annotated[
        str, Field(description="The line of the text, and a second line with `^` below the column; or empty")
    ]
    what: str
    hint: str | None


class Problem(TypedDict):
    """The reason why a request failed. Which of the members after `detail` there are depends on `type`."""

    type: Annotated[
        str,
        Field(
            description="`urn:tamis:problem:` and a word: `invalid-sql`, `invalid-input`, `conflict`, "
            "`not-found`, `not-bounded`, `not-accepted`, `refused`, `unavailable` or `internal`; for "
            "requests that were refused before they were read also `no-token`, `not-allowed`, `busy` "
            "and others"
        ),
    ]
    title: Annotated[str, Field(description="The same for all problems of one type")]
    status: Annotated[int, Field(description="The HTTP status")]
    detail: Annotated[str, Field(description="What is wrong, for people")]
    where: NotRequired[Annotated[str, Field(description="The place of the problem, as in `alerts.sql:3:7`")]]
    hint: NotRequired[Annotated[str, Field(description="What to do about it")]]
    retriable: NotRequired[
        Annotated[bool, Field(description="True if the same request can succeed when it is sent again")]
    ]
    errors: NotRequired[
        Annotated[list[Mistake], Field(description="With `invalid-sql` and `conflict`: every mistake")]
    ]
    verdict: NotRequired[Annotated[str, Field(description="With `not-bounded`: the verdict on memory")]]
    reason: NotRequired[Annotated[str, Field(description="With `not-bounded`: why it isn't bounded")]]
    repairs: NotRequired[
        Annotated[list[str], Field(description="With `not-bounded`: changes each of which bounds it")]
    ]
    query: NotRequired[
        Annotated[dict[str, Any], Field(description="With `not-bounded`: the query as EXPLAIN describes it")]
    ]

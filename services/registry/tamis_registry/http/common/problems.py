"""Errors as problem documents (RFC 9457), in the same words as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, NotRequired

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from tamis.errors import (
    InputError,
    NotAcceptedError,
    RefusedError,
    SqlError,
    SqlErrors,
    TamisError,
    UnavailableError,
)
from tamis.web.problems import problem
from tamis_registry.core.errors import MissingError
from tamis_registry.core.statements.catalog_changes import Conflict
from tamis_registry.core.statements.outcomes import UnboundedError


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


def problem_of(error: TamisError) -> Response:
    """The problem document of an error that Tamis raises on purpose."""
    about = {"where": error.where, "hint": error.hint, "retriable": error.retriable}
    match error:
        case SqlErrors() if all(isinstance(e, Conflict) for e in error.errors):
            return _conflict(error, error.errors)
        case Conflict():
            return _conflict(error, [error])
        case SqlErrors():
            return _invalid(error, error.errors)
        case SqlError():
            return _invalid(error, [error])
        case InputError():
            return problem(HTTPStatus.BAD_REQUEST, "invalid-input", "The input is wrong", error.what, **about)
        case MissingError():
            return problem(
                HTTPStatus.NOT_FOUND, "not-found", "There is nothing of that name", error.what, **about
            )
        case UnboundedError():
            memory = error.query.verdict.memory
            return problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "not-bounded",
                "The query's memory is not proven to be bounded",
                error.what,
                verdict=memory.verdict,
                reason=memory.reason,
                repairs=list(memory.repairs),
                query=error.query.document(),
                **about,
            )
        case NotAcceptedError():
            return problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "not-accepted",
                "The query is not accepted",
                error.what,
                **about,
            )
        case UnavailableError():
            return problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "Not available now", error.what, **about
            )
        case RefusedError():
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", "Refused", error.what, **about)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "Internal error", error.what, **about)


def _invalid(error: InputError, mistakes: Sequence[SqlError]) -> Response:
    errors = [_mistake(mistake) for mistake in mistakes]
    return problem(HTTPStatus.BAD_REQUEST, "invalid-sql", "The SQL has mistakes", str(error), errors=errors)


def _conflict(error: InputError, conflicts: Sequence[SqlError]) -> Response:
    errors = [_mistake(conflict) for conflict in conflicts]
    return problem(
        HTTPStatus.CONFLICT, "conflict", "It conflicts with what is there", str(error), errors=errors
    )


def _mistake(error: SqlError) -> dict[str, Any]:
    place = error.position
    file = {"file": place.file} if place and place.file is not None else {}
    return {
        **file,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "marked": place.marked if place else "",
        "what": error.what,
        "hint": error.hint,
    }

"""Errors over HTTP as problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


def problem(status: HTTPStatus, kind: str, title: str, detail: str, **more: Any) -> Response:
    """One problem document; `kind` ends its type's URN, `more` are its extension members."""
    document = {
        "type": f"urn:tamis:problem:{kind}",
        "title": title,
        "status": status.value,
        "detail": detail,
        **{name: value for name, value in more.items() if value is not None},
    }
    headers = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Response(orjson.dumps(document), status.value, headers, MEDIA_TYPE)


def answer_with_problems(app: Starlette, log: structlog.typing.FilteringBoundLogger) -> None:
    """Have the application say also as problem documents what nobody else does: no such path, another
    method, a fault of ours.
    """

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, detail = HTTPStatus(error.status_code), error.detail
        if detail == status.phrase:  # the router's
            detail = f"there is no {request.method} {request.url.path}"
        answer = problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail)
        answer.headers.update(error.headers or {})  # which methods are allowed
        return answer

    async def internal(_: Request, error: Exception) -> Response:
        log.error("request failed", error=repr(error))
        status, detail = HTTPStatus.INTERNAL_SERVER_ERROR, "it failed on this request; the log says how"
        return problem(status, "internal", "Internal error", detail)

    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, internal)

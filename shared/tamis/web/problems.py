"""Problem documents (RFC 9457): errors of HTTP servers as JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


def problem(status: HTTPStatus, kind: str, title: str, detail: str, **more: Any) -> Response:
    """One problem document. `kind` is the end of its type's URN; `more` are extension members."""
    document = {
        "type": f"urn:tamis:problem:{kind}",
        "title": title,
        "status": status.value,
        # Words of the request may be in it, and JSON lets them have halves of surrogate pairs.
        "detail": detail.encode(errors="replace").decode(),
        **{name: value for name, value in more.items() if value is not None},
    }
    headers = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Response(orjson.dumps(document), status.value, headers, MEDIA_TYPE)


def status_problem(status: HTTPStatus, detail: str) -> Response:
    """The problem document of a status that says all but the detail."""
    return problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail)


def answer_with_problems(app: Starlette, log: structlog.typing.FilteringBoundLogger) -> None:
    """Let the application answer with problem documents also for unknown paths, wrong methods, and internal
    errors.
    """

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, detail = HTTPStatus(error.status_code), error.detail
        if detail == status.phrase:  # set by the router
            detail = f"there is no {request.method} {request.url.path}"
        answer = status_problem(status, detail)
        answer.headers.update(error.headers or {})  # such as the allowed methods
        return answer

    async def internal(_: Request, error: Exception) -> Response:
        log.error("request failed", error=repr(error))
        status, detail = HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed; the log has the reason"
        return problem(status, "internal", "Internal error", detail)

    async def gone(_: Request, error: Exception) -> Response:
        return status_problem(HTTPStatus.BAD_REQUEST, "the body is not whole")

    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, internal)

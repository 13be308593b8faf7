"""Errors over HTTP as problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
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

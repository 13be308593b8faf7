"""The OpenAPI document of the interface, and its page `/docs`."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.responses import HTMLResponse

from tamis.web.problems import MEDIA_TYPE
from tamis_registry.http.common.problems import Problem

_REFERENCE = "#/components/schemas/{model}"

_REASONS = {
    400: "Mistakes in SQL or in parameters",
    401: "The request has no valid token",
    403: "The token lacks the right, or a page of another site sent the request",
    404: "Nothing has that name",
    408: "The request was not sent in time",
    409: "Another definition has the name, or others read it",
    413: "The body is too large",
    415: "The body has another type",
    421: "The host name is not one of this registry",
    422: "The query or the statement is refused",
    429: "Too many requests",
    503: "Kafka is away, or too many requests wait: send it again",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    str(status): {
        "description": f"{reason} (a problem document, RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }
    for status, reason in _REASONS.items()
}

TAGS = [
    {"name": "Statements", "description": "SQL that changes or explains definitions"},
    {"name": "Alerts", "description": "Alerts, their state and the reasons for it"},
    {"name": "Streams", "description": "Raw and derived streams with topics, readers and shards"},
    {"name": "Edges", "description": "Edges and their shards"},
    {"name": "Joiner", "description": "How far the joiner has come, and what it keeps"},
    {"name": "Kafka", "description": "The Kafka cluster of the fleet"},
    {"name": "Sinks", "description": "Sinks of notifications, and what waits for them"},
    {"name": "Patterns", "description": "Patterns that queries compare with"},
    {"name": "Functions", "description": "Functions of the users' own"},
    {"name": "Tables", "description": "Tables in files"},
    {"name": "Plans", "description": "What the fleet obeys, one version at a time"},
    {"name": "Readings", "description": "Newest records of topics; tokens need `readings: true`"},
    {"name": "Silences", "description": "Silences of alerts, and acknowledgements of episodes"},
    {"name": "Events", "description": "What changes, as server-sent events"},
    {"name": "Leases", "description": "Topics for readers outside the fleet"},
]

_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token with the role `reader` (GET, explain and try) or `writer` (everything).",
}


def described(app: FastAPI, *, tokens: bool) -> dict[str, Any]:
    """The OpenAPI document, made once. `tokens`: requests need a token."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            tags=app.openapi_tags,
            routes=app.routes,
        )
        components = document.setdefault("components", {})
        problem = TypeAdapter(Problem).json_schema(ref_template=_REFERENCE)
        components.setdefault("schemas", {}).update({**problem.pop("$defs"), "Problem": problem})
        components["responses"] = {f"Problem{status}": answer for status, answer in PROBLEMS.items()}
        # FastAPI writes them out in every operation; named once, the document has a third of the length.
        for operation in (one for path in document["paths"].values() for one in path.values()):
            for status in operation["responses"].keys() & PROBLEMS.keys():
                operation["responses"][status] = {"$ref": f"#/components/responses/Problem{status}"}
        if tokens:
            components["securitySchemes"] = {"token": _TOKEN}
            document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


PAGE = "/docs"
FILES = "/static-offline-docs"

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def docs_route(app: FastAPI) -> None:
    """Add the page. Its files are those that `FastAPIOffline` serves."""

    @app.get(PAGE, include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}{app.openapi_url}",
            title=f"{app.title} - Swagger UI",
            swagger_js_url=f"{root}{FILES}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{FILES}/swagger-ui.css",
            swagger_favicon_url=f"{root}{FILES}/favicon.png",
            # By default it sends the description to a server elsewhere.
            swagger_ui_parameters={"validatorUrl": None},
        )
        page.headers["Content-Security-Policy"] = policy(bytes(page.body))
        return page


def policy(page: bytes) -> str:
    """The Content-Security-Policy of Swagger UI's page: it runs scripts of this server, and the one that is
    written in the page. Swagger UI has styles inline.
    """
    digests = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in _INLINE.findall(page)]
    inline = " ".join(f"'sha256-{one}'" for one in digests)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {inline}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )

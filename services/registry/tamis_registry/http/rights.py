"""Rights of tokens at the registry: readers look and explain, writers also change definitions."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tamis.settings.token_file import TokenFile
from tamis.telemetry import Metrics, get_logger
from tamis.web.authentication import Authentication, Reason
from tamis.web.tokens import Token

# The page and the description of the API are the same for every registry. Browsers load them without a token.
_OPEN = ("/healthz", "/readyz", "/docs", "/docs/oauth2-redirect", "/openapi.json")
_OPEN_FILES = "/static-offline-docs/"
_READING = ("GET", "HEAD", "OPTIONS")
_EXPLAIN = "/v1/explain"


class RegistryRules:
    """The rights that requests to the registry need."""

    def is_open(self, path: str) -> bool:
        """True for health and the page of the API."""
        return path in _OPEN or path.startswith(_OPEN_FILES)

    def missing(self, token: Token, method: str, path: str) -> str | None:
        """The right that a token lacks."""
        if token.streams is not None:
            return "at the registry: its list of streams makes it a token of edges"
        if token.role == "writer" or method in _READING or path == _EXPLAIN:
            return None
        return (
            f"to change definitions ({method} {path:.100}): that needs the role 'writer', and it has 'reader'"
        )

    def is_logged(self, method: str, path: str) -> bool:
        """True for requests that change something."""
        return method not in _READING and path != _EXPLAIN


def require_tokens(app: FastAPI, tokens: TokenFile, metrics: Metrics) -> None:
    """Let in only requests with a token, and describe that in the OpenAPI document."""

    def count(reason: Reason) -> None:
        metrics.inc("tamis_http_refused_requests_total", service="registry", reason=reason)

    log = get_logger("registry.http")
    app.add_middleware(Authentication, tokens=tokens.current, rules=RegistryRules(), count=count, log=log)
    app.openapi = partial(_described, app)  # type: ignore[method-assign]


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document with the security scheme, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        scheme = {
            "type": "http",
            "scheme": "bearer",
            "description": "A token with the role `reader` (GET and explain) or `writer` (everything).",
        }
        document.setdefault("components", {})["securitySchemes"] = {"token": scheme}
        document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema

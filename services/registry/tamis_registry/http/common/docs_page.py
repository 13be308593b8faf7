"""The page of the API, `/docs`, with a policy that lets a browser run only its own scripts."""

from __future__ import annotations

import base64
import hashlib
import re

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse

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

"""The files of the console, a page for people that uses the HTTP API of this server."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

PREFIX = "/console/"

# Only files of this server, and nothing inline: a text of a topic on the page can't become a script.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_INDEX = "index.html"
# The name of a file in this folder has a digest of its content.
_DIGESTED = "assets/"


@dataclass(frozen=True)
class Encoded:
    """The content of a file in one encoding."""

    content: bytes
    coding: str | None = None

    @property
    def tag(self) -> str:
        """The entity tag. Each encoding has its own (RFC 9110, section 8.8.3.3)."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


def console_routes() -> list[BaseRoute]:
    """The page at `/` and its files below `/console/`. They are read once, and have no secrets."""
    found = _contents()
    routes: list[BaseRoute] = [_route(f"{PREFIX}{name}", name) for name in found]
    return [*routes, _route("/", _INDEX)]


@cache
def _contents() -> dict[str, tuple[Encoded, Encoded]]:
    """Every file by its path: as it is, and compressed."""
    return {
        name: (Encoded(content), Encoded(gzip.compress(content, mtime=0), "gzip"))
        for name, content in _files(files("tamis_registry") / "console")
    }


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file below a folder: its path from there, and its content."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def accepts_gzip(accepted: str) -> bool:
    """True if a client with this header `Accept-Encoding` takes gzip.

    >>> [accepts_gzip(text) for text in ("gzip, br", "br;q=1.0, GZIP;q=0.5", "gzip;q=0", "", "*")]
    [True, True, False, False, False]
    """
    for part in accepted.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def _route(path: str, name: str) -> Route:
    """The route of one file."""
    plain, compressed = _contents()[name]
    lasting = name.startswith(_DIGESTED)
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if lasting else "no-cache",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    media_type = _TYPES[name[name.rindex(".") :]]

    async def answer(request: Request) -> Response:
        chosen = compressed if accepts_gzip(request.headers.get("accept-encoding", "")) else plain
        with_tag = {**headers, "ETag": chosen.tag}
        if request.headers.get("if-none-match") == chosen.tag:
            return Response(status_code=304, headers=with_tag)
        if chosen.coding is not None:
            with_tag["Content-Encoding"] = chosen.coding
        return Response(chosen.content, headers=with_tag, media_type=media_type)

    return Route(path, answer, methods=["GET"], include_in_schema=False)

"""Guard of an HTTP server: rejects requests from other sites, limits bodies and concurrent requests.

A page of another site in a user's browser must not reach a server on that machine's loopback or network.
The requests of such a page have its Origin. With DNS rebinding (the site's own name points to this machine)
they have a Host that isn't ours. Requests without an Origin, such as those for images, have Sec-Fetch-Site.

A body is limited in its size, and in the time until it is whole, however a route reads it. The headers of
every answer limit what a browser does with it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.web.problems import problem, status_problem

# An answer is data: opened in a browser it loads, runs and frames nothing. Pages have policies of their own.
SAFE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def with_safe_headers(send: Send) -> Send:
    """A `send` that adds `SAFE_HEADERS` where the application has set no others."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_safely


# A client that needs longer blocks others on purpose, or has a broken connection.
SECONDS = 30.0


class LimitedBody:
    """`receive` and `send` of a request whose body has at most `limit` bytes.

    `receive` raises HTTPException for a body that is too large (413) or too slow (408). If the answer has
    begun, it says instead that the client has gone, which ends the answer.
    """

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._size = 0
        self._deadline: float | None = None
        self._whole = self._answered = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        self._answered = True
        await self._send(message)

    async def receive(self) -> Message:
        """The next part of the body, and after the body the client's end."""
        if self._whole:
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + SECONDS
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            return self._refuse(408, f"the body did not come within {SECONDS:g} s")
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            return self._refuse(413, f"the limit is {self._limit} bytes; send it in parts")
        self._whole = not message.get("more_body", False)
        return message

    def _refuse(self, status: int, detail: str) -> Message:
        if self._answered:
            return {"type": "http.disconnect"}
        raise HTTPException(status, detail)


MOST_REQUESTS = 256
MOST_BYTES = 128 * 2**20  # of all bodies in progress

# Probes and scrapes must be answered under load too. They change nothing.
_PROBES = {"/healthz", "/readyz", "/metrics"}


class Guard:
    """ASGI middleware that rejects requests before the application sees them."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        body_limit: int,
        hosts: Iterable[str] = (),
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`body_limit`: the greatest size of a body, in bytes. `hosts`: names of this server, besides those
        that no other site can use.
        """
        self._app = app
        self._hosts = {name.lower().rstrip(".") for name in (*hosts, socket.gethostname())}
        self._body_limit = body_limit
        self._most_requests, self._most_bytes = most_requests, max(most_bytes, body_limit)
        self._requests = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, send = Headers(scope=scope), with_safe_headers(send)
        refusal = self._misframed(headers) or self._stranger(scope["method"], headers)
        if refusal is None and scope["path"] not in _PROBES:
            await self._counted(scope, receive, send, headers)
            return
        body = LimitedBody(receive, send, self._body_limit)
        await (refusal or self._app)(scope, body.receive, body.send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Pass on a request that counts as one in progress."""
        size = self._size(headers)
        refusal = self._overload(size)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._requests += 1
        self._bytes += size
        try:
            body = LimitedBody(receive, send, self._body_limit)
            await self._app(scope, body.receive, body.send)
        finally:
            self._requests -= 1
            self._bytes -= size

    def _size(self, headers: Headers) -> int:
        """Bytes of the body that the application will read at most."""
        return self._body_limit if "transfer-encoding" in headers else _announced(headers)

    def _misframed(self, headers: Headers) -> Response | None:
        """The refusal of a body that isn't read at all: its end isn't clear, it is compressed, or it is
        announced as too large.
        """
        if "transfer-encoding" in headers and "content-length" in headers:
            # Where a proxy believes one header and this server the other, a body hides a second request
            # (RFC 9112, section 6.1).
            detail = "a request has either Transfer-Encoding or Content-Length"
            answer = status_problem(HTTPStatus.BAD_REQUEST, detail)
            answer.headers["Connection"] = "close"
            return answer
        encoding = headers.get("content-encoding", "identity").strip()
        if encoding.lower() != "identity":
            detail = f"Content-Encoding {encoding!r:.100} is not supported; send the body uncompressed"
            return status_problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
        if _announced(headers) > self._body_limit:
            detail = f"the limit is {self._body_limit} bytes; send it in parts"
            return status_problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        return None

    def _stranger(self, method: str, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host and not is_ours(host, self._hosts):
            detail = f"{host!r:.300} is not a name of this server; if it is, add it to the configured names"
            return problem(HTTPStatus.MISDIRECTED_REQUEST, "wrong-host", "Wrong host", detail)
        if origin is not None and _place_of(origin) != host:
            detail = f"a page of {origin:.300} may not use this API"
            return status_problem(HTTPStatus.FORBIDDEN, detail)
        if _is_from_another_site(method, headers):
            detail = "a page of another site may not use this API (the header Sec-Fetch-Site says so)"
            return status_problem(HTTPStatus.FORBIDDEN, detail)
        return None

    def _overload(self, size: int) -> Response | None:
        if self._requests < self._most_requests and self._bytes + size <= self._most_bytes:
            return None
        detail = f"{self._requests} requests of {self._bytes} bytes are in progress; try again later"
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", "Busy", detail)


def _announced(headers: Headers) -> int:
    """Bytes of the body by its Content-Length, 0 without one."""
    length = headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() else 0


def _place_of(origin: str) -> str | None:
    """The host and the port of an Origin; None if it has none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:  # brackets around a text that is no address
        return None


def _is_from_another_site(method: str, headers: Headers) -> bool:
    """True if a browser says that a page of another site made the request. A link that a person follows is
    answered: the other page can't read the answer, and the request changes nothing. Only browsers send the
    header.
    """
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not (opened and method in ("GET", "HEAD"))


def is_ours(host: str, names: Iterable[str] = ()) -> bool:
    """True if a Host header names this server: by an address, by one of `names` (lower case), or as
    localhost. Another name without a dot may be one of a stranger too: a resolver appends the domain of its
    network to it, and some top-level domains have addresses.

    >>> [is_ours(h) for h in ("127.0.0.1:8181", "[::1]:80", "localhost", "registry:8181", "evil.example")]
    [True, True, True, False, False]
    >>> is_ours("Tamis.Example.:443", {"tamis.example"}), is_ours("registry:8181", {"registry"})
    (True, True)
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower().rstrip(".")
    except ValueError:  # brackets around a text that is no address
        return False
    if name in names or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

"""Clients that send slowly: they are refused, and others are served meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tamis.telemetry.logs import get_logger
from tamis.telemetry.server import HttpServer
from tamis.web.connection_limits import Limits
from tamis.web.guard import Guard
from tamis.web.problems import answer_with_problems

HEADERS = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
BODY = HEADERS + b"\r\n{"
FAST = Limits(header_seconds=1.0, grace_seconds=1.0)


async def _post(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


def _server(limits: Limits | None) -> Iterator[HttpServer]:
    application = Starlette(
        routes=[Route("/", _post, methods=["POST"])], middleware=[Middleware(Guard, body_limit=10**6)]
    )
    answer_with_problems(application, get_logger("test"))
    server = HttpServer(application, "127.0.0.1", 0, limits)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """With the limits of every server."""
    yield from _server(None)


@pytest.fixture
def quick() -> Iterator[HttpServer]:
    """A server that waits for a second only."""
    yield from _server(FAST)


def connect(server: HttpServer, data: bytes) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    found.sendall(data)
    return found


def answer(connection: socket.socket) -> str:
    """All that comes until the server closes the connection."""
    parts = []
    with connection:
        while data := connection.recv(4096):
            parts.append(data)
    return b"".join(parts).decode()


@pytest.mark.parametrize("sent", [HEADERS, BODY])
def test_others_are_served_while_a_thousand_are_slow(server: HttpServer, sent: bytes) -> None:
    with ExitStack() as stack:
        for n in range(1000):
            slow = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            stack.enter_context(slow)
            try:
                slow.sendall(sent)
            except ConnectionError:
                assert n > 100  # refused: the places of its address are taken
        time.sleep(Limits().safe_seconds)
        began = time.monotonic()
        served = 0
        # A busy machine accepts the slow connections later, and leaves each of them this long too. All of
        # them are closed only after more than five seconds.
        while served < 20:
            served += httpx.post(server.url, content=b"x" * 1000).text == "1000"
            assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("sent", "why"),
    [(b"", "headers"), (HEADERS, "headers"), (BODY, "body arrives at less than 1000 bytes a second")],
)
def test_what_comes_too_slowly_is_answered(quick: HttpServer, sent: bytes, why: str) -> None:
    began = time.monotonic()
    found = answer(connect(quick, sent))
    assert found.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert "application/problem+json" in found
    assert why in found
    assert time.monotonic() - began < 5


def test_a_body_that_comes_at_some_rate_is_waited_for(quick: HttpServer) -> None:
    with connect(quick, HEADERS.replace(b"100000", b"15000") + b"connection: close\r\n\r\n") as connection:
        for _ in range(10):
            connection.sendall(b"x" * 1500)
            time.sleep(0.2)
        assert answer(connection).endswith("15000")


def test_a_connection_is_kept_for_the_next_request(quick: HttpServer) -> None:
    with httpx.Client(base_url=quick.url) as client:
        for _ in range(3):
            assert client.post("/", content=b"xyz").text == "3"
            time.sleep(0.6)


def test_a_refused_body_does_not_come_for_long(server: HttpServer) -> None:
    """The answer comes, and a client that goes on sending loses the connection."""
    most, sent = 64 * 2**20, 0
    head = HEADERS.replace(b"100000", b"9" * 15) + b"\r\n"
    with suppress(ConnectionError), connect(server, head) as connection:
        while sent < most:
            sent += connection.send(b"x" * 65_536)
    assert sent < most


def test_an_address_has_so_many_places() -> None:
    for server in _server(Limits(per_address=2, safe_seconds=60)):
        with connect(server, BODY), connect(server, BODY):
            time.sleep(0.2)
            found = answer(connect(server, b""))
        assert found.startswith("HTTP/1.1 429 Too Many Requests\r\n")

"""Bodies of requests that are too large, in chunks, or slow, at every route of registry and edge."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.routing import Route

from tamis_edge.settings import Http, HttpSource
from tamis_edge.sources.http import HttpSources
from tamis_edge.storage.journal import Journal

# More than any route takes: the edge's limit is 16 MiB.
LARGE = 64 * 2**20
PIECE = b"[" * 65_536


def exchange(url: str, head: str, pieces: Iterator[bytes], seconds: float = 30) -> tuple[int, int, float]:
    """Send a request by hand. Returns the status of the answer, the bytes that were sent until it came, and
    the seconds it took; status 0 if the connection ended without an answer.
    """
    parts, sent, began = urlsplit(url), 0, time.monotonic()
    with socket.create_connection((parts.hostname or "", parts.port or 0), seconds) as connection:
        connection.sendall(f"{head}host: {parts.netloc}\r\n\r\n".encode())
        found = b""
        try:
            for piece in pieces:
                connection.settimeout(0.0001)
                try:
                    found = connection.recv(65_536)
                    break
                except TimeoutError:
                    connection.settimeout(seconds)
                    connection.sendall(piece)
                    sent += len(piece)
            while b"\r\n" not in found and (more := connection.recv(65_536)):
                found += more
        except ConnectionError:
            pass  # it ended while this client sent
    status = re.match(rb"HTTP/1\.1 (\d+)", found)
    return (int(status[1]) if status else 0), sent, time.monotonic() - began


def chunked() -> Iterator[bytes]:
    for _ in range(LARGE // len(PIECE)):
        yield b"%x\r\n%s\r\n" % (len(PIECE), PIECE)
    yield b"0\r\n\r\n"


def attack(url: str, method: str, path: str) -> None:
    request = f"{method} {path} HTTP/1.1\r\ncontent-type: application/json\r\n"
    announced = f"{request}content-length: {LARGE}\r\n"
    status, sent, _ = exchange(url, announced, (PIECE for _ in range(LARGE // len(PIECE))))
    assert status in (0, 413) and sent < LARGE, (method, path, status, sent)
    # A route without a body may answer first. Nobody reads on for long.
    status, sent, _ = exchange(url, f"{request}transfer-encoding: chunked\r\n", chunked())
    assert status < 500 and sent < 32 * 2**20, (method, path, status, sent)
    status, _, took = exchange(url, f"{request}content-length: 1000\r\n", iter([b"["]))
    assert 0 < status < 500 and took < 15, (method, path, status, took)
    both = f"{request}content-length: 5\r\ntransfer-encoding: chunked\r\n"
    assert exchange(url, both, iter([b"0\r\n\r\n"]))[0] == 400, (method, path)


def routes(app: Any) -> Iterator[tuple[str, str]]:
    for route in app.router.routes:
        if isinstance(route, Route) and not route.path.startswith("/console/assets/"):
            path = re.sub(r"\{[^}]*\}", "0123456789abcdef0123456789abcdef", route.path)
            for method in sorted((route.methods or set()) | {"POST"}):
                yield method, path


@pytest.mark.timeout(300)
def test_every_route_of_the_registry_limits_bodies(fresh: str, start: Any) -> None:
    registry = start(fresh).ready()
    found = list(routes(registry.app))
    assert ("POST", "/v1/silences") in found and len(found) > 40
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda one: attack(registry.server.url, *one), found))
    assert registry.call("GET", "/readyz").status_code == 200


@pytest.mark.timeout(300)
def test_every_route_of_an_edge_limits_bodies(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 10**6)
    sources = HttpSources(
        [HttpSource(name="http", kind="http", streams=["air"])],
        edge="e",
        http=Http(port=0),
        journal=journal,
        plan=lambda: None,
        wake=lambda: None,
    )
    sources.start()
    try:
        for path in ("/v1/streams/air", "/v1/streams/none", "/none"):
            for method in ("POST", "GET", "PUT"):
                attack(sources.url, method, path)
    finally:
        sources.stop()
        journal.close()

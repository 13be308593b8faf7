"""The guard of a server: requests from other sites, and the limit of requests at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tamis.telemetry import get_logger
from tamis.web.guard import Guard, is_ours
from tamis.web.problems import answer_with_problems


def guarded(**options: Any) -> tuple[Guard, asyncio.Event]:
    """An application that answers when it may."""
    go = asyncio.Event()

    async def answer(request: Request) -> Response:
        body = await request.body()
        await go.wait()
        return PlainTextResponse(str(len(body)))

    app = Starlette(routes=[Route("/x", answer, methods=["GET", "POST"]), Route("/healthz", answer)])
    return Guard(app, **{"body_limit": 100, **options}), go


def ask(guard: Guard, path: str = "/x", content: Any = b"", method: str | None = None, **headers: str) -> Any:
    async def post() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://127.0.0.1") as c:
            verb = method or ("GET" if path == "/healthz" else "POST")
            return await c.request(verb, path, content=content, headers=headers)

    return post()


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8282", True),
        ("[::1]:8282", True),
        ("localhost", True),
        ("a.localhost:1", True),
        ("192.168.7.7", True),
        ("registry:8181", False),  # a search domain, or a top-level domain, may answer it
        ("ai", False),
        ("", False),
        ("edge-7", True),
        ("tamis.plant.example", True),
        ("Tamis.Plant.Example.:443", True),
        ("plant.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example:8282", False),
        ("[::1", False),
        ("a@evil.example", False),
    ],
)
def test_a_host_is_an_address_a_local_name_or_configured(host: str, ours: bool) -> None:
    assert is_ours(host, {"tamis.plant.example", "edge-7"}) is ours


def test_pages_from_elsewhere_are_refused() -> None:
    async def check() -> None:
        guard, go = guarded()
        go.set()
        cases = [
            ({}, 200),
            ({"origin": "http://127.0.0.1"}, 200),
            ({"origin": "http://elsewhere.example"}, 403),
            ({"origin": "null"}, 403),
            ({"origin": "http://["}, 403),
            ({"origin": ""}, 403),
            ({"host": "[::1"}, 421),
            ({"host": "[" * 5_000}, 421),
            ({"host": "evil.example"}, 421),
            ({"host": "evil.example", "origin": "http://evil.example"}, 421),
        ]
        for headers, status in cases:
            answer = await ask(guard, **headers)
            assert answer.status_code == status, headers
            assert status == 200 or answer.headers["content-type"] == "application/problem+json"
        # Probes too: a page elsewhere would read the names of all streams.
        assert (await ask(guard, "/healthz", host="evil.example")).status_code == 421
        assert (await ask(guard, "/healthz", host="127.0.0.1:9464")).status_code == 200

    asyncio.run(check())


def test_what_another_site_s_page_asks_for_is_refused_without_an_origin() -> None:
    async def check() -> None:
        guard, go = guarded()
        go.set()
        image = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
        opened = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        framed = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
        for method, site, more, status in (
            ("GET", "cross-site", image, 403),
            ("GET", "same-site", image, 403),  # another port of the same machine
            ("POST", "cross-site", opened, 403),  # a form
            ("POST", "same-site", image, 403),
            ("GET", "cross-site", framed, 403),
            ("GET", "cross-site", opened, 200),  # a link
            ("GET", "same-origin", image, 200),
            ("POST", "same-origin", image, 200),
            ("GET", "none", opened, 200),
        ):
            answer = await ask(guard, method=method, **{"sec-fetch-site": site, **more})
            assert answer.status_code == status, (method, site, more)

    asyncio.run(check())


def test_more_requests_than_there_are_places_are_told_to_come_again() -> None:
    async def check() -> None:
        guard, go = guarded(most_requests=2)
        under_way = [asyncio.create_task(ask(guard)) for _ in range(2)]
        await asyncio.sleep(0.05)
        refused = await ask(guard)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        probe = asyncio.create_task(ask(guard, "/healthz"))
        await asyncio.sleep(0.05)
        go.set()
        assert [(await task).status_code for task in (*under_way, probe)] == [200] * 3
        assert (await ask(guard)).status_code == 200

    asyncio.run(check())


def test_bodies_have_only_so_many_bytes_together() -> None:
    async def pieces() -> Any:
        yield b"x"

    async def check() -> None:
        guard, go = guarded(most_bytes=150)
        first = asyncio.create_task(ask(guard, content=b"x" * 80))
        await asyncio.sleep(0.05)
        assert (await ask(guard, content=b"x" * 71)).status_code == 503
        assert (await ask(guard, content=pieces())).status_code == 503  # it could be 100 bytes
        second = asyncio.create_task(ask(guard, content=b"x" * 70))
        await asyncio.sleep(0.05)
        go.set()
        assert [(await task).text for task in (first, second)] == ["80", "70"]
        assert (await ask(guard, content=pieces())).text == "1"
        assert (await ask(guard, content=b"x" * 101)).status_code == 413

    asyncio.run(check())


def test_a_fault_of_ours_is_a_problem_document_without_its_words() -> None:
    async def fails(_: Request) -> Response:
        raise RuntimeError("secret")

    app = Starlette(routes=[Route("/x", fails)])
    answer_with_problems(app, get_logger("test"))

    async def check() -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.get("/x")
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
        assert "secret" not in answer.text

    asyncio.run(check())


def test_a_body_that_does_not_come_loses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.web.guard.SECONDS", 0.05)

    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    async def check() -> None:
        guard, _ = guarded()
        scope = {"type": "http", "method": "POST", "path": "/x", "headers": [(b"host", b"localhost")]}
        await guard({**scope, "query_string": b"", "root_path": ""}, receive, send)

    asyncio.run(check())
    assert sent[0]["status"] == 408


def test_a_body_has_one_end_and_no_compression() -> None:
    async def check() -> None:
        guard, go = guarded()
        go.set()
        for path in ("/x", "/healthz"):
            both = await ask(guard, path, **{"transfer-encoding": "chunked", "content-length": "3"})
            assert (both.status_code, both.headers["connection"]) == (400, "close"), path
            packed = await ask(guard, path, content=b"x", **{"content-encoding": "gzip"})
            assert packed.status_code == 415, path

    asyncio.run(check())


def test_every_answer_limits_what_a_browser_does_with_it() -> None:
    async def check() -> None:
        guard, go = guarded()
        go.set()
        for answer in (await ask(guard), await ask(guard, "/none"), await ask(guard, host="evil.example")):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["content-security-policy"]

    asyncio.run(check())


def test_an_answer_that_has_begun_ends_with_a_body_that_is_too_large() -> None:
    """Whoever waits for the client's end gets it, and no error behind an answer."""
    messages = [{"type": "http.request", "body": b"x" * 60, "more_body": True}] * 2
    seen: list[str] = []

    async def receive() -> Any:
        return messages.pop()

    async def send(_: Any) -> None:
        pass

    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not seen or seen[-1] != "http.disconnect":
            seen.append((await receive())["type"])

    scope = {"type": "http", "method": "GET", "path": "/x", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(streams, body_limit=100)(scope, receive, send))
    assert seen == ["http.request", "http.disconnect"]

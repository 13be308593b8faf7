"""Turns of requests for documents: each token has its share, and a slow client holds up nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.unit.registry.test_openapi import Made

from tamis.web.authentication import TOKEN
from tamis.web.tokens import Token
from tamis_registry.http.common.fair_requests import PLACES, FairRequests
from tamis_registry.http.common.rights import works_long


class Answering:
    """An application that answers when it is told, and remembers who has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.told = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope[TOKEN].name)
        await self.told.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})


def request(name: str, role: str = "reader", method: str = "GET", path: str = "/v1/alerts") -> Scope:
    token = Token(name=name, role=role, sha256="0" * 64)  # type: ignore[arg-type]
    return {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", TOKEN: token}


async def never() -> Message:
    raise AssertionError


async def quick(_: Message) -> None:
    """A client that takes all at once."""


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_token_with_many_requests_leaves_turns_to_the_others() -> None:
    async def check() -> None:
        inner = Answering()
        app = FairRequests(inner, has_own=works_long)
        asked = [asyncio.create_task(app(request("many"), never, quick)) for _ in range(50)]
        await settled()
        assert inner.begun == ["many"] * (PLACES - 1)
        others = [request("other"), request("writer", "writer"), request("writer", "writer", "DELETE")]
        asked += [asyncio.create_task(app(scope, never, quick)) for scope in others]
        asked.append(asyncio.create_task(app(request("long", path="/v1/events"), never, quick)))
        await settled()
        assert inner.begun[PLACES - 1 :] == ["writer", "writer", "long"]
        inner.told.set()
        await asyncio.wait_for(asyncio.gather(*asked), 10)
        assert inner.begun[PLACES + 2] == "other"

    asyncio.run(check())


def test_a_client_that_reads_slowly_holds_no_turn() -> None:
    async def check() -> None:
        inner = Answering()
        inner.told.set()
        app = FairRequests(inner, has_own=works_long)
        taken = asyncio.Event()

        async def slow(_: Message) -> None:
            await taken.wait()

        asked = [asyncio.create_task(app(request("slow"), never, slow)) for _ in range(20)]
        await settled()
        await asyncio.wait_for(app(request("other"), never, quick), 5)
        taken.set()
        await asyncio.gather(*asked)

    asyncio.run(check())


def test_too_many_are_refused() -> None:
    async def check() -> None:
        inner, statuses = Answering(), []
        app = FairRequests(inner, has_own=works_long)

        async def take(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        asked = [asyncio.create_task(app(request("many"), never, take)) for _ in range(250)]
        await settled()
        assert set(statuses) == {503} and 40 <= len(statuses) <= 50
        inner.told.set()
        await asyncio.gather(*asked)
        assert statuses.count(200) + statuses.count(503) == 250

    asyncio.run(check())


@pytest.fixture(scope="module")
def routes() -> list[Any]:
    return [route for route in Made().app.routes if hasattr(route, "methods")]


def test_every_route_has_turns(routes: list[Any]) -> None:
    """Those that wait for turns of their own are named here, so that a new route is thought of."""
    own = {route.path for route in routes if works_long(route.path) and route.path.startswith("/v1/")}
    assert own == {
        "/v1/statements",
        "/v1/explain",
        "/v1/try",
        "/v1/events",
        "/v1/silences",
        "/v1/silences/{silence}",
        "/v1/episodes",
        "/v1/episodes/{episode}/acknowledgement",
        "/v1/alerts/{name}/alarms",
        "/v1/alerts/{name}/episodes",
        "/v1/streams/{name}/readings",
        "/v1/dead-letters",
    }

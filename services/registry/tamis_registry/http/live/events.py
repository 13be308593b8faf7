"""Server-sent events: the messages of a broadcast, for each client as long as its token is valid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Header, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tamis.settings.token_file import TokenFile
from tamis.web.authentication import TOKEN
from tamis.web.tokens import Token
from tamis_registry.http.common.rights import may_change, may_operate, may_see_readings
from tamis_registry.http.live.broadcast import Broadcast, Listener
from tamis_registry.registry_loop import RegistryLoop

HEARTBEAT_SECONDS = 10.0


class EventStream(StreamingResponse):
    """The messages of a listener, until its client goes."""

    media_type = "text/event-stream"

    def __init__(
        self,
        broadcast: Broadcast,
        listener: Listener,
        hello: Mapping[str, Any],
        allowed: Callable[[], bool],
    ) -> None:
        super().__init__(messages_of(listener, hello, allowed), headers={"Cache-Control": "no-store"})
        self._broadcast, self._listener = broadcast, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._broadcast.leave(self._listener)


async def messages_of(
    listener: Listener, hello: Mapping[str, Any], allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The messages of a listener until it is ended or no longer allowed to listen; `hello` is the data of the
    first one.

    `allowed` is asked before each message and each heartbeat.
    """
    await listener.ready.wait()
    # Without a number, so that a client that comes back asks for those after the last numbered one.
    yield b"event: hello\ndata: %s\n\n" % orjson.dumps(hello)
    while True:
        try:
            await asyncio.wait_for(listener.woken.wait(), HEARTBEAT_SECONDS)
        except TimeoutError:
            if not allowed():
                return
            yield b": \n\n"
            continue
        listener.woken.clear()
        while listener.waiting:
            if not allowed():
                return
            yield listener.waiting.popleft().text
        if listener.missed:
            missed, listener.missed = listener.missed, 0
            yield b"event: gap\ndata: %s\n\n" % orjson.dumps({"missed": missed})
        if listener.ended:
            return


LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, description="The number of the last message")
]


def event_routes(app: FastAPI, loop: RegistryLoop, broadcast: Broadcast, tokens: TokenFile | None) -> None:
    """Add the route. A listener whose token is revoked, changed or expired hears no more."""

    def version() -> int:
        with loop.reading() as (registry, _):
            return registry.plan.version

    @app.get(
        "/v1/events",
        summary="What changes, as server-sent events",
        description="Messages `plan`, `alerts`, `streams` and `edges` say what to read again, at most one a "
        "second of each; `alarm` and `episode` are the records, for tokens with `readings: true`. "
        "docs/http-api.md has their data.",
        tags=["Events"],
        response_model=None,
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def events(request: Request, last: LastEventId = None) -> Response:
        # In a thread: the loop of the registry may hold the lock for a part of a second.
        plan = await run_in_threadpool(version)
        token: Token | None = request.scope.get(TOKEN)

        def allowed() -> bool:
            if tokens is None or token is None:
                return True
            return tokens.current().holds(token, datetime.now(UTC))

        listener = broadcast.join(last, readings=may_see_readings(request))
        hello = {
            "plan": plan,
            "readings": listener.readings,
            "operate": may_operate(request),
            "change": may_change(request),
        }
        return EventStream(broadcast, listener, hello, allowed)

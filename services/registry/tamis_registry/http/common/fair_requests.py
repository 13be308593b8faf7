"""Turns of requests for documents, so that those of one token never keep the others waiting.

They run in threads, of which Python runs one at a time: forty requests of one client would slow all others
and the registry's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.errors import UnavailableError
from tamis_registry.http.common.problems import problem_of
from tamis_registry.http.common.rights import client_of
from tamis_registry.proving.turns import Client, Turns

# At a time; one of them is left to writers.
PLACES = 4
# A console that is opened sends some twenty requests at once.
MOST_WAITING = 200

# Who sent the request that is being answered.
asking: ContextVar[Client] = ContextVar("asking")


class FairRequests:
    """ASGI middleware behind authentication: requests wait for turns, which end as their answers begin."""

    def __init__(self, app: ASGIApp, *, has_own: Callable[[str], bool]) -> None:
        """`has_own`: paths of requests that have turns of their own, or none."""
        self._app, self._has_own = app, has_own
        self._turns = Turns(PLACES, MOST_WAITING, what="requests")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        changes = request.method not in ("GET", "HEAD")
        client = client_of(request, changes=changes)
        asking.set(client)
        # A change may wait for Kafka, in the queue of the registry's loop.
        if changes or self._has_own(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            turn = await self._turns.take(client)
        except UnavailableError as error:
            await problem_of(error)(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            # A client may take its time to read.
            self._turns.release(turn)
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            self._turns.release(turn)

"""Turns of requests for documents, so that those of one token never keep the others waiting.

They run in threads, of which Python runs one at a time: forty requests of one client would slow all others
and the registry's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.errors import UnavailableError
from tamis_registry.http.common.problems import problem_of
from tamis_registry.http.common.rights import client_of
from tamis_registry.proving.turns import NOBODY, Client, Turns

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


T = TypeVar("T")

# Each has a client of Kafka, with the memory of one search.
READERS = 4
# Further requests wait. One search takes about 2 s, so more would wait in vain.
WAITING = 8
WAIT_SECONDS = 5.0


class ReadingTurns:
    """Runs functions that read topics, `readers` at a time; further ones wait, writers first. For one event
    loop.
    """

    def __init__(
        self, readers: int = READERS, *, waiting: int = WAITING, seconds: float = WAIT_SECONDS
    ) -> None:
        self._readers, self._seconds = readers, seconds
        # None is reserved: a turn is short.
        self._turns = Turns(readers, waiting, what="requests that read from Kafka", reserved=0)
        # The threads of other requests have a limit of their own, which is the library's.
        self._threads = anyio.CapacityLimiter(readers)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a thread, for the client whose request is being answered.

        Raises UnavailableError if too many requests wait, or if it doesn't get its turn in time.
        """
        try:
            async with asyncio.timeout(self._seconds):
                turn = await self._turns.take(asking.get(NOBODY))
        except TimeoutError:
            what = f"{self._readers} requests read from Kafka already"
            hint = "try again in a few seconds"
            raise UnavailableError(what, where="registry", hint=hint) from None
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        finally:
            self._turns.release(turn)

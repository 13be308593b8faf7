"""Turns of requests that read topics: in threads of their own, so that they never hold up other requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio

from tamis.errors import UnavailableError
from tamis_registry.http.common.fair_requests import asking
from tamis_registry.proving.turns import NOBODY, Turns

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

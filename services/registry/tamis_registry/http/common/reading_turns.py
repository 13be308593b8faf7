"""Turns of requests that read topics: in threads of their own, so that they never hold up other requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio

from tamis.errors import UnavailableError

T = TypeVar("T")

# Each has a client of Kafka, with the memory of one search.
READERS = 4
# Further requests wait. One search takes about 2 s, so more would wait in vain.
WAITING = 8
WAIT_SECONDS = 5.0


class ReadingTurns:
    """Runs functions that read topics, `readers` at a time; further ones wait. For one event loop."""

    def __init__(
        self, readers: int = READERS, *, waiting: int = WAITING, seconds: float = WAIT_SECONDS
    ) -> None:
        self._readers, self._most_waiting, self._seconds = readers, waiting, seconds
        self._free = asyncio.Semaphore(readers)
        # The threads of other requests have a limit of their own, which is the library's.
        self._threads = anyio.CapacityLimiter(readers)
        self._waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a thread.

        Raises UnavailableError if too many requests wait, or if it doesn't get its turn in time.
        """
        if self._free.locked() and self._waiting >= self._most_waiting:
            raise self._refused(f"{self._waiting} requests wait for their turn to read from Kafka")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise self._refused(f"{self._readers} requests read from Kafka already") from None
        finally:
            self._waiting -= 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        finally:
            self._free.release()

    def _refused(self, what: str) -> UnavailableError:
        return UnavailableError(what, where="registry", hint="try again in a few seconds")

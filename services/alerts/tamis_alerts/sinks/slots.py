"""Slots of a sink: so many notifications are sent to it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Notifications that are begun, for each slot. Those that wait for their next attempt have no slot, so that
# notifications of other keys are sent meanwhile. A sink that is down must not get an attempt of each
# notification that waits in Kafka.
BEGUN_PER_SLOT = 8


class Slots:
    """The slots of one sink. Create them in the event loop that delivers."""

    def __init__(self, parallel: int) -> None:
        self._free = asyncio.Semaphore(parallel)
        self._begun = asyncio.Semaphore(parallel * BEGUN_PER_SLOT)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Slot]:
        """A slot, as soon as there is one; it is free after the block."""
        async with self._begun:
            slot = Slot(self._free)
            await slot.take()
            try:
                yield slot
            finally:
                slot.give_back()


class Slot:
    """The slot of one notification."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._taken = False

    async def take(self) -> None:
        """Wait for a slot."""
        await self._free.acquire()
        self._taken = True

    def give_back(self) -> None:
        """Let another notification have the slot."""
        if self._taken:
            self._taken = False
            self._free.release()

    async def sleep(self, seconds: float) -> None:
        """Wait between two attempts. Another notification may have the slot meanwhile."""
        self.give_back()
        await asyncio.sleep(seconds)
        await self.take()

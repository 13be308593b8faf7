"""A proxy in front of a broker that passes on so many bytes a second, as a slow link does."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

# What waits on the way is part of the link: with large buffers it would look fast at first.
_BUFFER = 4096


class SlowLink:
    """Listens on `port`, and connects each client to `target` on the loopback."""

    def __init__(self, port: int, target: int, rate: float) -> None:
        """`rate`: bytes a second from the target to a client, for each connection."""
        self.rate = rate
        self.port, self._target = port, target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slow-link", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target, limit=_BUFFER)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass_on(reader, there[1], slow=False))
                    group.create_task(self._pass_on(there[0], writer, slow=True))
            finally:
                there[1].close()
        except* (OSError, EOFError, asyncio.CancelledError):
            pass  # one side has gone: the connection ends
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _pass_on(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, slow: bool) -> None:
        while data := await source.read(_BUFFER):
            to.write(data)
            with suppress(ConnectionError):
                await to.drain()
            if slow:
                await asyncio.sleep(len(data) / self.rate)
        raise EOFError

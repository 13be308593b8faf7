"""A few processes that parse and prove SQL statements for all requests.

When a client disconnects, the work for its request stops: the process is killed, and another one is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from tamis.errors import TamisError, UnavailableError
from tamis.query.file_access import FileAccess
from tamis.query.model import Catalog
from tamis_registry.core.statements.reading import Read
from tamis_registry.proving.messages import Settings
from tamis_registry.proving.prover import Prover

PROCESSES = 2
SECONDS = 30  # of processor time
DATA_BYTES = 2 << 30
# Requests that wait for a process. A further request is refused with the advice to try again.
MOST_WAITING = 32


def provers_of(file_access: FileAccess, processes: int = PROCESSES, seconds: int = SECONDS) -> Provers:
    """A pool. `file_access`: the files that tables may name. `seconds`: processor time for each text."""
    return Provers([Prover(Settings(file_access, seconds, DATA_BYTES)) for _ in range(processes)])


class Provers:
    """The pool. The event loop of the HTTP server uses it; any thread may call `start` and `close`."""

    def __init__(self, provers: Sequence[Prover], most_waiting: int = MOST_WAITING) -> None:
        self._all, self._idle = list(provers), list(provers)
        self._free = asyncio.Semaphore(len(provers))
        self._threads = ThreadPoolExecutor(len(provers), "prover")
        self._waiting, self._most_waiting = 0, most_waiting

    def start(self) -> None:
        """Start one process. Most registries never need a second one at the same time."""
        self._all[0].start()

    def close(self) -> None:
        """End all processes. Requests in progress fail."""
        for prover in self._all:
            prover.close()
        self._threads.shutdown()

    @property
    def busy(self) -> int:
        """The number of texts that are being read."""
        return len(self._all) - len(self._idle)

    async def read(self, text: str, catalog: Catalog, file: str | None = None, *, keep: bool = False) -> Read:
        """Have a text read; cancelling this cancels the work.

        Raises the errors of `Prover.ask`, and UnavailableError if too many texts wait.
        """
        if self._waiting >= self._most_waiting:
            raise UnavailableError(
                f"too many requests with SQL statements are waiting: {self._waiting}",
                where="registry",
                hint="try again later",
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        # The last that was given back: it knows the definitions, and others need not be started.
        prover = self._idle.pop()
        ask = partial(prover.ask, text, catalog, file, keep=keep)
        work = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            prover.kill()
            raise
        finally:
            work.add_done_callback(partial(self._give_back, prover))

    def _give_back(self, prover: Prover, work: asyncio.Future[Read]) -> None:
        error = work.exception()
        if error is not None and not isinstance(error, TamisError):
            prover.kill()  # nobody knows what is still in its pipe
        self._idle.append(prover)
        self._free.release()
        if prover.ended:
            # Where the pool is closed meanwhile, nothing is started any more.
            with suppress(RuntimeError):
                self._threads.submit(prover.start)

"""A few processes that parse and prove SQL statements for all requests.

When a client disconnects, the work for its request stops: the process gets a short time to finish, is killed
then, and another one is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from tamis.errors import TamisError, UnavailableError
from tamis.query.file_access import FileAccess
from tamis.query.model import Catalog
from tamis_registry.core.statements.reading import Read
from tamis_registry.proving.messages import Needed, Settings, Trial, Tried
from tamis_registry.proving.prover import Prover

PROCESSES = 2
SECONDS = 30  # of processor time
DATA_BYTES = 2 << 30
# Requests that wait for a process. A further request is refused with the advice to try again.
MOST_WAITING = 32
# An editor gives up a request with every key that is typed. Most texts are read within a fraction of the time
# that a new process needs to start, so a process is killed only if it works longer than about that time.
GRACE_SECONDS = 2.0

T = TypeVar("T")


def provers_of(file_access: FileAccess, processes: int = PROCESSES, seconds: int = SECONDS) -> Provers:
    """A pool. `file_access`: the files that tables may name. `seconds`: processor time for each text."""
    return Provers([Prover(Settings(file_access, seconds, DATA_BYTES)) for _ in range(processes)])


class Provers:
    """The pool. The event loop of the HTTP server uses it; any thread may call `start` and `close`."""

    def __init__(
        self,
        provers: Sequence[Prover],
        most_waiting: int = MOST_WAITING,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`grace_seconds`: the time that a process has to finish a text whose client has gone."""
        self._all, self._idle = list(provers), list(provers)
        self._free = asyncio.Semaphore(len(provers))
        self._threads = ThreadPoolExecutor(len(provers), "prover")
        self._waiting, self._most_waiting = 0, most_waiting
        self._grace = grace_seconds
        # Trials leave one process to statements, if there are several.
        self._trials = asyncio.Semaphore(max(1, len(provers) - 1))

    def start(self) -> None:
        """Start the process that takes the first text. Most registries never need a second one at a time."""
        self._idle[-1].start()

    def close(self) -> None:
        """End all processes. Requests in progress fail."""
        for prover in self._all:
            prover.close()
        self._threads.shutdown()

    @property
    def busy(self) -> int:
        """The number of texts that are being read."""
        return len(self._all) - len(self._idle)

    async def read(
        self,
        text: str,
        catalog: Catalog,
        file: str | None = None,
        *,
        keep: bool = False,
        files: bool = True,
    ) -> Read:
        """Have a text read; cancelling this cancels the work. `files`: the text may name files.

        Raises the errors of `Prover.ask`, and UnavailableError if too many texts wait.
        """
        return await self._run(lambda prover: prover.ask(text, catalog, file, keep=keep, files=files))

    async def try_out(self, trial: Trial, catalog: Catalog) -> Needed | Tried:
        """Have a query of a text run on samples, as of `Prover.try_out`; cancelling this cancels the work.

        Raises the errors of `Prover.try_out`, and UnavailableError if too many texts wait.
        """
        await self._wait_for(self._trials)
        try:
            return await self._run(lambda prover: prover.try_out(trial, catalog))
        finally:
            self._trials.release()

    async def _wait_for(self, free: asyncio.Semaphore) -> None:
        if self._waiting >= self._most_waiting:
            raise UnavailableError(
                f"too many requests with SQL statements are waiting: {self._waiting}",
                where="registry",
                hint="try again later",
            )
        self._waiting += 1
        try:
            await free.acquire()
        finally:
            self._waiting -= 1

    async def _run(self, ask: Callable[[Prover], T]) -> T:
        await self._wait_for(self._free)
        # The last that was given back: it knows the definitions, and others need not be started.
        prover = self._idle.pop()
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, ask, prover)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            loop.call_later(self._grace, _end, prover, work)
            raise
        finally:
            work.add_done_callback(partial(self._give_back, prover))

    def _give_back(self, prover: Prover, work: asyncio.Future[T]) -> None:
        error = work.exception()
        if error is not None and not isinstance(error, TamisError):
            prover.kill()  # nobody knows what is still in its pipe
        self._idle.append(prover)
        self._free.release()
        if prover.ended:
            # Where the pool is closed meanwhile, nothing is started any more.
            with suppress(RuntimeError):
                self._threads.submit(prover.start)


def _end(prover: Prover, work: asyncio.Future[T]) -> None:
    """End the work of a request whose client has gone. A process that is done may have the next one."""
    if not work.done():
        prover.kill()

"""A few processes that parse and prove SQL statements for all requests, and forks that plan explanations.

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

from tamis.declarations.file_access import FileAccess
from tamis.errors import TamisError, UnavailableError
from tamis.query.model import Catalog
from tamis_registry.core.statements.reading import Read
from tamis_registry.proving.fork import Fork
from tamis_registry.proving.messages import Needed, Settings, Trial, Tried, decoded
from tamis_registry.proving.prover import Prover
from tamis_registry.proving.turns import MOST_WAITING, Client, Rank, Turn, Turns

PROCESSES = 2
SECONDS = 30  # of processor time
DATA_BYTES = 2 << 30
# Of a fork that plans: what it needs beyond the registry's memory, and its answer.
FORK_BYTES = 1 << 30
MOST_ANSWER = 64 * 2**20
# An editor gives up a request with every key that is typed. Most texts are read within a fraction of the time
# that a new process needs to start, so a process is killed only if it works longer than about that time.
GRACE_SECONDS = 2.0
# A single process has no place that is left to writers: so long they wait for a reader's text.
PATIENCE_SECONDS = 2.0

T = TypeVar("T")

CHANGE = Client(rank=Rank.CHANGE)


def provers_of(file_access: FileAccess, processes: int = PROCESSES, seconds: int = SECONDS) -> Provers:
    """A pool. `file_access`: the files that tables may name. `seconds`: processor time for each text."""
    provers = [Prover(Settings(file_access, seconds, DATA_BYTES)) for _ in range(processes)]
    return Provers(provers, fork_seconds=seconds)


class Provers:
    """The pool. The event loop of the HTTP server uses it; any thread may call `start` and `close`."""

    def __init__(
        self,
        provers: Sequence[Prover],
        most_waiting: int = MOST_WAITING,
        grace_seconds: float = GRACE_SECONDS,
        fork_seconds: int = SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """`grace_seconds`: the time that a process has to finish a text whose client has gone.
        `fork_seconds`: processor time to plan an explanation.
        """
        self._all, self._idle = list(provers), list(provers)
        self._turns = Turns(len(provers), most_waiting, patience)
        self._threads = ThreadPoolExecutor(2 * len(provers), "prover")
        self._grace, self._fork_seconds = grace_seconds, fork_seconds
        self._forks: set[Fork] = set()

    def start(self) -> None:
        """Start the process that takes the first text. Most registries never need a second one at a time."""
        self._idle[-1].start()

    def close(self) -> None:
        """End all processes. Requests in progress fail."""
        for fork in list(self._forks):
            fork.kill()
        for prover in self._all:
            prover.close()
        self._threads.shutdown()

    @property
    def busy(self) -> int:
        """The number of texts that are being read or planned."""
        return self._turns.busy

    async def read(
        self,
        text: str,
        catalog: Catalog,
        file: str | None = None,
        *,
        keep: bool = False,
        client: Client = CHANGE,
    ) -> Read:
        """Have a text read; cancelling this cancels the work.

        Raises the errors of `Prover.ask`, and UnavailableError if too many texts wait.
        """
        async with _Work(self, client) as work:
            return await work.prove(lambda prover: prover.ask(text, catalog, file, keep=keep))

    async def explain(
        self,
        text: str,
        catalog: Catalog,
        file: str | None,
        *,
        files: bool,
        client: Client,
        prepare: Callable[[], Callable[[Read], bytes]],
    ) -> bytes:
        """Have a text read, and planned in a fork by the function that `prepare` returns; cancelling this
        cancels the work. `prepare` is called by a thread of this process. `files`: the text may name files.

        Raises the errors of `Prover.ask` and of `Fork.run`, and UnavailableError if too many texts wait.
        """
        async with _Work(self, client) as work:
            found = await work.prove(
                lambda prover: prover.ask_encoded(text, catalog, file, keep=False, files=files)
            )

            def prepared() -> Callable[[], bytes]:
                plan = prepare()

                def planned() -> bytes:
                    read = decoded(found)
                    assert isinstance(read, Read)
                    return plan(read)

                return planned

            return await work.fork(prepared)

    async def try_out(self, trial: Trial, catalog: Catalog, client: Client = CHANGE) -> Needed | Tried:
        """Have a query of a text run on samples, as of `Prover.try_out`; cancelling this cancels the work.

        Raises the errors of `Prover.try_out`, and UnavailableError if too many texts wait.
        """
        async with _Work(self, client) as work:
            return await work.prove(lambda prover: prover.try_out(trial, catalog))

    async def fork(self, prepare: Callable[[], Callable[[], bytes]], client: Client) -> bytes:
        """The answer of the function that `prepare` returns, which runs in a fork. Cancelling and errors are
        as with `explain`.
        """
        async with _Work(self, client) as work:
            return await work.fork(prepare)


class _Work:
    """The turn of one request, in which processes work for it."""

    def __init__(self, pool: Provers, client: Client) -> None:
        self._pool, self._client = pool, client
        self._turn: Turn | None = None
        self._last: asyncio.Future[object] | None = None

    async def __aenter__(self) -> _Work:
        self._turn = await self._pool._turns.take(self._client)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        turn, last = self._turn, self._last
        assert turn is not None
        # A process may still work, though its client has gone.
        if last is None or last.done():
            self._pool._turns.release(turn)
        else:
            last.add_done_callback(lambda _: self._pool._turns.release(turn))
        if turn.ended and isinstance(error, UnavailableError):
            raise UnavailableError(
                "the request was ended, since the only proving process was needed for a writer",
                where="registry",
                hint="try again later",
            ) from None

    async def prove(self, ask: Callable[[Prover], T]) -> T:
        """The answer of one of the processes."""
        pool = self._pool
        # The last that was given back: it knows the definitions, and others need not be started.
        prover = pool._idle.pop()
        if self._client.rank == Rank.READER and pool._idle:
            # A writer who comes meanwhile needn't wait until another process has started.
            pool._threads.submit(pool._idle[-1].start)
        work = self._begun(prover.kill, partial(ask, prover))
        work.add_done_callback(partial(self._give_back, prover))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(pool._grace, _end, prover, work)
            raise

    async def fork(self, prepare: Callable[[], Callable[[], bytes]]) -> bytes:
        """The answer of the function that `prepare` returns, which runs in a fork."""
        pool = self._pool
        fork = Fork(pool._fork_seconds, FORK_BYTES, MOST_ANSWER)
        pool._forks.add(fork)
        work = self._begun(fork.kill, lambda: fork.run(prepare()))
        work.add_done_callback(lambda _: pool._forks.discard(fork))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            fork.kill()
            work.add_done_callback(_look_at)
            raise

    def _begun(self, end: Callable[[], None], work: Callable[[], T]) -> asyncio.Future[T]:
        assert self._turn is not None
        self._turn.end = end
        found = asyncio.get_running_loop().run_in_executor(self._pool._threads, work)
        self._last = found  # type: ignore[assignment]
        return found

    def _give_back(self, prover: Prover, work: asyncio.Future[T]) -> None:
        pool, error = self._pool, work.exception()
        broken = error is not None and not isinstance(error, TamisError)
        if broken or prover.overgrown:
            prover.kill()  # of a broken one, nobody knows what is still in its pipe
        pool._idle.append(prover)
        if prover.ended:
            # Where the pool is closed meanwhile, nothing is started any more.
            with suppress(RuntimeError):
                pool._threads.submit(prover.start)


def _end(prover: Prover, work: asyncio.Future[T]) -> None:
    """End the work of a request whose client has gone. A process that is done may have the next one."""
    if not work.done():
        prover.kill()


def _look_at(work: asyncio.Future[bytes]) -> None:
    """Take the error of a fork whose client has gone, which nobody else takes."""
    work.exception()

"""Threads of a service: those that run while a context is open, and those without which it has to end."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tamis.errors import TamisError
from tamis.telemetry.logs import get_logger


class BackgroundThread(ABC):
    """An object with a thread of its own: `with` starts the thread, and ends it at the end of the block.

    `join_seconds`: how long the end waits for the thread, which may be in the middle of a step.
    """

    def __init__(self, name: str, join_seconds: float) -> None:
        self._join_seconds = join_seconds
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._closing,), name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ask_to_end()
        self._thread.join(self._join_seconds)

    def ask_to_end(self) -> None:
        """Let the thread end, without waiting for it."""
        self._closing.set()

    @abstractmethod
    def _run(self, closing: threading.Event) -> None:
        """The work of the thread, until `closing` is set."""


_log = get_logger("threads")


class DeadThreadError(TamisError):
    """An essential thread of the service has died."""

    retriable = True

    def __init__(self, name: str, cause: BaseException | None) -> None:
        why = "ended unexpectedly" if cause is None else f"died of {cause!r}"
        super().__init__(f"the thread {name!r} {why}", hint="restart the service; no readings are lost")


class WorkerThread:
    """A daemon thread that keeps the exception that ended it."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = False

    def start(self) -> None:
        """Start the thread."""
        self._started = True
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end, at most `timeout` seconds; not at all if it never started."""
        if self._started:
            self._thread.join(timeout)

    def check(self) -> None:
        """Check that the thread is alive; a service that needs it calls this regularly.

        Raises:
            DeadThreadError: the thread was started and has ended.
        """
        if self._started and not self._thread.is_alive():
            raise DeadThreadError(self._thread.name, self._fault) from self._fault

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._fault = error
            _log.error("a thread has died", thread=self._thread.name, error=repr(error), exc_info=True)

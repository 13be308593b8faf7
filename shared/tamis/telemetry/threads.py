"""Threads that a service can't do without: when one dies the service has to end, and not go on half dead."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tamis.errors import TamisError
from tamis.telemetry.logs import get_logger

_log = get_logger("threads")


class DeadThreadError(TamisError):
    """A thread that the service can't do without has died."""

    def __init__(self, name: str, cause: BaseException | None) -> None:
        why = "ended by itself" if cause is None else f"died of {cause!r}"
        super().__init__(f"the thread {name!r} {why}", hint="nothing is lost: start the service again")


class WorkerThread:
    """A daemon thread that remembers what it died of."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = False

    def start(self) -> None:
        """Begin to work."""
        self._started = True
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, at most `timeout` seconds; at once where it never started."""
        if self._started:
            self._thread.join(timeout)

    def check(self) -> None:
        """Whoever relies on the thread asks now and then.

        Raises:
            DeadThreadError: it was started and is gone.
        """
        if self._started and not self._thread.is_alive():
            raise DeadThreadError(self._thread.name, self._fault) from self._fault

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._fault = error
            _log.error("a thread has died", thread=self._thread.name, error=repr(error), exc_info=True)

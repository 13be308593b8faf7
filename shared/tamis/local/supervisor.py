"""Supervisor: restarts services that have ended, with exponential backoff, and reports each fault once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from tamis.errors import EXIT_INPUT, TamisError

# The first pause before a restart, and the factor of each further one. A service that was killed once must be
# back soon, and one that fails at each start must not slow down the others.
FIRST_PAUSE = 0.5
LONGER = 2.0
LONGEST_PAUSE = 30.0
# A service that was ready for this long has recovered: if it ends again, that is a new fault.
HEALTHY_SECONDS = 60.0
_LOOK_SECONDS = 0.5


class Service(Protocol):
    """A process that the supervisor keeps running: `ServiceProcess`, `EmbeddedKafka`."""

    @property
    def name(self) -> str:
        """The name in messages."""

    def exit_code(self) -> int | None:
        """The exit code, None while it runs; minus the signal's number if a signal ended it, as in Popen."""

    def launch(self) -> None:
        """Start the process without waiting until it is ready. Raises TamisError."""

    def is_ready(self) -> bool:
        """True if the service does its work."""

    def last_error(self) -> str | None:
        """The last error that it logged; None if it logged none."""

    @property
    def log_path(self) -> str:
        """The path of the log."""


@dataclass
class _State:
    """State of one service. `ready`: the time since which it does its work, None while it doesn't. `due`: the
    time of its restart. `reported`: the last reported fault.
    """

    ready: float | None
    due: float | None = None
    pause: float = FIRST_PAUSE
    reported: object = None
    given_up: bool = False


class Supervisor:
    """Keeps services running. Use it in the thread that started them: the kernel ends them with that thread.

    A service with wrong input (exit code 2) isn't restarted: it would end the same way each time.
    """

    def __init__(
        self,
        services: Iterable[Service],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._clock = say, clock
        self._states = [(service, _State(ready=clock())) for service in services]

    def run(self, stopping: threading.Event) -> None:
        """Supervise the services until `stopping` is set."""
        while not stopping.wait(_LOOK_SECONDS):
            self.look(stopping)

    def look(self, stopping: threading.Event | None = None) -> None:
        """Check all services once, and start those that are due. Returns early if `stopping` is set."""
        for service, state in self._states:
            if stopping is not None and stopping.is_set():
                return
            if state.given_up:
                continue
            if state.due is None:
                self._watch(service, state)
            if state.due is not None and self._clock() >= state.due:
                self._start(service, state)

    def _watch(self, service: Service, state: _State) -> None:
        code, now = service.exit_code(), self._clock()
        if code is not None:
            self._ended(service, state, code)
        elif state.ready is None:
            if service.is_ready():
                state.ready = now
                self._say(f"{service.name} is back")
        elif now - state.ready >= HEALTHY_SECONDS:
            state.pause, state.reported = FIRST_PAUSE, None

    def _ended(self, service: Service, state: _State, code: int) -> None:
        state.ready = None
        why = service.last_error() or f"its log is {service.log_path}"
        if code == EXIT_INPUT:
            state.given_up = True
            self._say(f"{service.name} {_end(code)} and is not started again: {why}")
            return
        self._report(state, code, f"{service.name} {_end(code)} and is started again: {why}")
        self._wait(state)

    def _start(self, service: Service, state: _State) -> None:
        try:
            service.launch()
        except TamisError as error:
            self._report(state, str(error), f"{service.name} can't be started, which is tried again: {error}")
            self._wait(state)
        else:
            state.due = None

    def _report(self, state: _State, fault: object, text: str) -> None:
        """Report a fault, unless it was the last one reported and the service has not recovered since."""
        if state.reported != fault:
            state.reported = fault
            self._say(text)

    def _wait(self, state: _State) -> None:
        state.due = self._clock() + state.pause
        state.pause = min(state.pause * LONGER, LONGEST_PAUSE)


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"

"""Health of a service: alive while its main loop runs, ready while it can work, and ended in time by a stop.

A step that waits for a Kafka that is away, or for a rebalance, can last longer than an orchestrator waits
before it kills the process. Such an end is a crash like any other: the next process recovers from Kafka and
its files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tamis.telemetry.logs import get_logger

_log = get_logger("health")

_CALLS = 5


def innermost_calls(thread: int | None) -> str:
    """The innermost calls of a thread (its `ident`) now, the innermost first; empty if it has ended."""
    frame = sys._current_frames().get(thread or 0)
    calls = traceback.extract_stack(frame)[-_CALLS:] if frame is not None else []
    return " in ".join(f"{call.name} ({Path(call.filename).name}:{call.lineno})" for call in reversed(calls))


LEAST = 2**20  # bytes; with less, the next write is likely to fail


def disk_trouble(folder: Path, least: int = LEAST) -> str | None:
    """The reason why files in a folder can't be written; None if the disk has room.

    >>> disk_trouble(Path("/no/such/folder"))
    "/no/such/folder can't be read: No such file or directory"
    """
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return f"{folder} can't be read: {error.strerror}"
    free = found.f_bavail * found.f_frsize
    if free < least:
        return f"{folder} has {free} bytes left; make room on the disk"
    return None


class Health:
    """State that the main loop sets, and that `/healthz` and `/readyz` show."""

    def __init__(self, stale_after: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._stale_after = stale_after
        self._beat = clock()
        self._thread: int | None = None  # of the main loop
        self._stalled = False  # the log says that the loop has stalled
        self._not_ready = "starting"
        self._failing: dict[str, str] = {}
        self._failed: str | None = None
        self._detail = ""
        self._notes: dict[str, str] = {}

    def beat(self) -> None:
        """Note that the main loop has run once more."""
        with self._lock:
            self._beat = self._clock()
            self._thread = threading.get_ident()
            was_stalled, self._stalled = self._stalled, False
        if was_stalled:
            _log.info("the main loop runs again")

    def loop_runs(self, within: float) -> bool:
        """True if the main loop has run in the last `within` seconds."""
        with self._lock:
            return self._clock() - self._beat <= within

    def ready(self, detail: str = "") -> None:
        """The service does its work; `detail` is a remark for the operator."""
        with self._lock:
            self._not_ready, self._detail = "", detail

    def not_ready(self, reason: str) -> None:
        """The service can't do its work, for this reason."""
        with self._lock:
            self._not_ready = reason

    def check(self, name: str, reason: str | None) -> None:
        """Set the result of a check (Kafka, the disk, the plan): the reason of its failure, or None."""
        with self._lock:
            if reason is None:
                self._failing.pop(name, None)
            else:
                self._failing[name] = reason

    def note(self, name: str, text: str) -> None:
        """Set a remark of a check for the operator, which doesn't affect readiness; empty for none."""
        with self._lock:
            if text:
                self._notes[name] = text
            else:
                self._notes.pop(name, None)

    def failed(self, reason: str) -> None:
        """The service can't continue and is about to end."""
        with self._lock:
            self._failed = self._not_ready = reason

    def liveness(self) -> tuple[bool, str]:
        """True if the main loop has run lately and nothing has failed permanently, with a text. If the loop
        has stalled, the text and the log say in which calls: a supervisor that asks may end the process next.
        """
        with self._lock:
            if self._failed is not None:
                return False, self._failed
            age, thread = self._clock() - self._beat, self._thread
            stalled = age > self._stale_after
            is_new, self._stalled = stalled and not self._stalled, stalled
        text = f"last turn of the loop {age:.1f} s ago"
        if not stalled:
            return True, text
        step = innermost_calls(thread)
        if is_new:
            _log.error("the main loop has stalled", seconds=round(age, 1), step=step)
        return False, f"{text}; it is in {step}" if step else text

    def readiness(self) -> tuple[bool, str]:
        """True if the service is ready, with a text: a line for each check that fails, or else the operator's
        remark.
        """
        with self._lock:
            reasons = [self._not_ready] if self._not_ready else []
            reasons += [f"{name}: {reason}" for name, reason in sorted(self._failing.items())]
            notes = (f"{name}: {text}" for name, text in sorted(self._notes.items()))
            ready = "; ".join(["ready", *([self._detail] if self._detail else []), *notes])
        return not reasons, "\n".join(reasons) or ready


# A stop without Kafka mostly takes half a second. Docker kills after ten seconds.
STOP_SECONDS = 8.0


def end_after(seconds: float = STOP_SECONDS, leave: Callable[[int], object] = os._exit) -> None:
    """End the process with exit code 0 after `seconds`, unless it has ended by itself before."""
    timer = threading.Timer(seconds, _leave, (seconds, leave))
    timer.daemon = True  # it doesn't keep a process that has ended in order
    timer.start()


def _leave(seconds: float, leave: Callable[[int], object]) -> None:
    step = innermost_calls(threading.main_thread().ident)
    _log.warning("stopped in the middle of a step that takes too long", seconds=seconds, step=step)
    leave(0)

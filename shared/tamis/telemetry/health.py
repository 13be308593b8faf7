"""Health of a service: alive while its loop turns, ready once it can do its work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Health:
    """Set by the service's loop, read by `/healthz` and `/readyz`."""

    def __init__(self, stale_after: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._stale_after = stale_after
        self._beat = clock()
        self._not_ready = "starting"
        self._failed: str | None = None

    def beat(self) -> None:
        """The loop has turned once more."""
        with self._lock:
            self._beat = self._clock()

    def ready(self) -> None:
        """The service does its work."""
        with self._lock:
            self._not_ready = ""

    def not_ready(self, reason: str) -> None:
        """The service can't do its work; `reason` says why."""
        with self._lock:
            self._not_ready = reason

    def failed(self, reason: str) -> None:
        """The service can't go on and is about to end."""
        with self._lock:
            self._failed = self._not_ready = reason

    def liveness(self) -> tuple[bool, str]:
        """Whether the loop has turned lately and nothing has failed for good, and a sentence."""
        with self._lock:
            if self._failed is not None:
                return False, self._failed
            age = self._clock() - self._beat
        return age <= self._stale_after, f"last turn of the loop {age:.1f} s ago"

    def readiness(self) -> tuple[bool, str]:
        """Whether the service is ready, and why not."""
        with self._lock:
            return not self._not_ready, self._not_ready or "ready"

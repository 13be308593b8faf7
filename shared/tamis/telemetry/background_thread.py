"""A thread of a service that runs while a context is open."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


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

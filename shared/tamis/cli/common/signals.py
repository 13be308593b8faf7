"""Signals that stop a command: at once while it starts, or by an event which it looks at."""

from __future__ import annotations

import os
import signal
import threading


def stop_event() -> threading.Event:
    """An event that Ctrl-C (SIGINT) and SIGTERM set from now on."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def end_on_signals() -> None:
    """Let SIGTERM and Ctrl-C end this process at once, with exit code 0, until it handles them itself. For a
    service that imports much before it opens anything: under load that takes seconds, and a stop in between
    is no failure.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))

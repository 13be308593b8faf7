"""Signals that stop a command which runs until it is stopped."""

from __future__ import annotations

import signal
import threading


def stop_event() -> threading.Event:
    """An event that Ctrl-C (SIGINT) and SIGTERM set from now on."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping

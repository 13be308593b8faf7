"""The greatest time that a stop may take: after it the process ends where it is.

A step that waits for a Kafka that is away, or for a rebalance, can last longer than an orchestrator waits
before it kills the process. Such an end is a crash like any other: the next process recovers from Kafka and
its files.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from tamis.telemetry.innermost_calls import innermost_calls
from tamis.telemetry.logs import get_logger

# A stop without Kafka mostly takes half a second. Docker kills after ten seconds.
STOP_SECONDS = 8.0

_log = get_logger("stop")


def end_after(seconds: float = STOP_SECONDS, leave: Callable[[int], object] = os._exit) -> None:
    """End the process with exit code 0 after `seconds`, unless it has ended by itself before."""
    timer = threading.Timer(seconds, _leave, (seconds, leave))
    timer.daemon = True  # it doesn't keep a process that has ended in order
    timer.start()


def _leave(seconds: float, leave: Callable[[int], object]) -> None:
    step = innermost_calls(threading.main_thread().ident)
    _log.warning("stopped in the middle of a step that takes too long", seconds=seconds, step=step)
    leave(0)

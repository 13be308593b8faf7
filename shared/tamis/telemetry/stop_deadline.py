"""The greatest time that a stop may take: after it the process ends where it is.

A step that waits for a Kafka that is away, or for a rebalance, can last longer than an orchestrator waits
before it kills the process. Such an end is a crash like any other: the next process recovers from Kafka and
its files.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from tamis.telemetry.logs import get_logger

# A stop without Kafka mostly takes half a second. Docker kills after ten seconds.
STOP_SECONDS = 8.0
_CALLS = 5  # that the log names, the innermost first

_log = get_logger("stop")


def end_after(seconds: float = STOP_SECONDS, leave: Callable[[int], object] = os._exit) -> None:
    """End the process with exit code 0 after `seconds`, unless it has ended by itself before."""
    timer = threading.Timer(seconds, _leave, (seconds, leave))
    timer.daemon = True  # it doesn't keep a process that has ended in order
    timer.start()


def _leave(seconds: float, leave: Callable[[int], object]) -> None:
    _log.warning("stopped in the middle of a step that takes too long", seconds=seconds, step=_step())
    leave(0)


def _step() -> str:
    """The innermost calls of the main thread now."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    calls = traceback.extract_stack(frame)[-_CALLS:] if frame is not None else []
    return " in ".join(f"{call.name} ({Path(call.filename).name}:{call.lineno})" for call in reversed(calls))

"""What Spark's JVM writes on standard error, told as events of this process' own log.

Log4j writes a line of JSON an event (Spark's structured logs); what comes besides, such as the JVM's own
warnings and words of Python workers, is taken line by line as it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from tamis.telemetry import get_logger

# Of one line; a longer one is told in parts.
LONGEST = 1 << 20
LAST_SECONDS = 2.0

log = get_logger("joiner.spark")

# As of every library only what may be wrong is told; Spark says a hundred other things as it starts.
_TOLD = {"WARN": "warning", "ERROR": "error", "FATAL": "error"}


@contextmanager
def retold() -> Iterator[int]:
    """A file descriptor for a child's standard error, for as long as the child lives."""
    reading, writing = os.pipe()
    lines = os.fdopen(reading, "rb")

    def work() -> None:
        with lines:
            while line := lines.readline(LONGEST):
                if text := line.strip():
                    tell(text)

    thread = threading.Thread(target=work, name="java-logs", daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        # A child that outlives this process keeps the pipe open.
        thread.join(LAST_SECONDS)


def tell(line: bytes) -> None:
    """One line as an event."""
    try:
        found = orjson.loads(line)
        message, logger, level = found["msg"], found["logger"], found["level"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        log.warning(line.decode(errors="replace"), logger="java")
        return
    if level in _TOLD:
        trace = {"exception": _trace(found["exception"])} if found.get("exception") else {}
        write: Callable[..., None] = getattr(log, _TOLD[level])
        write(message, logger=logger, **trace)


def _trace(exception: dict[str, Any]) -> str:
    """As Java prints it."""
    frames = [
        f"\tat {frame.get('class')}.{frame.get('method')}({frame.get('file')}:{frame.get('line')})"
        for frame in exception.get("stacktrace") or ()
    ]
    return "\n".join([f"{exception.get('class')}: {exception.get('msg')}", *frames])

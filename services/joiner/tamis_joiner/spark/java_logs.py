"""Forwarding of the standard error of Spark's JVM to this process' own log.

Log4j writes a line of JSON for each event (log4j2.properties). Other lines, such as warnings of the JVM and
the output of Python workers, are logged unchanged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from tamis.telemetry import get_logger

# A longer line is logged in parts.
MAX_LINE_BYTES = 1 << 20
# A child that outlives this process keeps the pipe open: the thread isn't waited for any longer.
LAST_SECONDS = 2.0

log = get_logger("joiner.spark")

CONFIGURATION = Path(__file__).with_name("log4j2.properties")

# Warnings and errors only: Spark logs about a hundred other events while it starts.
_LEVELS = {"WARN": "warning", "ERROR": "error", "FATAL": "error"}


@contextmanager
def forwarded_logs() -> Iterator[int]:
    """A file descriptor for the standard error of a child process. It is open while the context is open."""
    reading, writing = os.pipe()
    lines = os.fdopen(reading, "rb")

    def work() -> None:
        with lines:
            while line := lines.readline(MAX_LINE_BYTES):
                if text := line.strip():
                    log_line(text)

    thread = threading.Thread(target=work, name="java-logs", daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        thread.join(LAST_SECONDS)


def log_line(line: bytes) -> None:
    """Log one line as an event."""
    try:
        found = orjson.loads(line)
        message, logger, level = found["msg"], found["logger"], found["level"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        log.warning(line.decode(errors="replace"), logger="java")
        return
    if level in _LEVELS:
        trace = {"exception": found["exception"].strip()} if found.get("exception") else {}
        write: Callable[..., None] = getattr(log, _LEVELS[level])
        write(message, logger=logger, **trace)

"""Messages of Spark's JVM: its log, forwarded to that of the joiner, and the causes of its failures."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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

# What to do after the system has killed a process of Spark.
KILLED_HINT = (
    "if the system's log says that memory was short, give the joiner more; start it again: it continues "
    "where it ended"
)
# A chain of causes may be a cycle.
_MOST_CAUSES = 20
_TRACE = "Traceback (most recent call last):"
# What Spark adds to messages of its error classes, also behind a trace.
_STATE = re.compile(r"\s+SQLSTATE: \w{5}$")


@contextmanager
def forwarded_logs() -> Iterator[int]:
    """A file descriptor for the standard error of a child process. It is open while the context is open.

    Log4j writes a line of JSON for each event (log4j2.properties). Other lines, such as warnings of the JVM
    and the output of Python workers, are logged unchanged.
    """
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


def causes(error: BaseException) -> list[str]:
    """The messages of an exception of PySpark or Py4J and of its causes, each once."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return list(_chain(java)) if java is not None else [_line(str(error))]


def query_failure(query: Any) -> list[str]:
    """The messages of the exception that ended a query of the JVM; empty if it has none."""
    found = query.exception()
    return list(_chain(found.get())) if found.isDefined() else []


def _chain(java: Any) -> Iterator[str]:
    messages: list[str] = []
    for _ in range(_MOST_CAUSES):
        if java is None:
            return
        name = str(java.getClass().getName()).rpartition(".")[2]
        message = _line(str(java.getMessage() or ""))
        # Most exceptions repeat the message of their cause; that of the query always does.
        if name != "StreamingQueryException" and not (message and any(message in m for m in messages)):
            messages.append(f"{name}: {message}" if message else name)
            yield messages[-1]
        java = java.getCause()


def _line(message: str) -> str:
    """The first line of a message, or the last line of the trace of a Python worker.

    >>> trace = 'Traceback (most recent call last):\\n  File "a.py"\\nE: no right'
    >>> _line(f"[PYTHON_EXCEPTION] {trace}\\n SQLSTATE: 38000")
    'E: no right'
    """
    if _TRACE in message:
        return _STATE.sub("", message.partition(_TRACE)[2].strip()).splitlines()[-1].strip()
    return message.strip().partition("\n")[0].strip()

"""Causes of a failure of Spark: an exception of the JVM with its chain of causes, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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

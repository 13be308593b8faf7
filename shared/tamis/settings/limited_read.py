"""Reading of a configuration file with limits: its size, and the time that the writer of a pipe may take."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path
from typing import NamedTuple

# A command in a process substitution, such as one that asks a vault, may need a network.
SECONDS = 30.0
PIPE_HINT = "name a regular file, or a pipe whose writer writes everything and closes it"
_CHUNK = 2**20


class Content(NamedTuple):
    """The content of a file, and the bits of its mode."""

    bytes: bytes
    mode: int


def read_limited(path: Path, most: int, seconds: float | None = None) -> Content:
    """The content of a file, a pipe or a device; of one with more than `most` bytes, the first `most` + 1.

    `seconds` limits the wait for the writer of a pipe; by default `SECONDS`. Without a limit, a pipe that has
    no writer, or whose writer doesn't close it, would stop the caller for ever.

    Raises OSError, and TimeoutError if the content isn't complete in time.
    """
    seconds = SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    # O_NOCTTY: a terminal that a service without one opens would become its controlling terminal.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(file).st_mode
        content = bytearray()
        while len(content) <= most:
            try:
                chunk = os.read(file, min(_CHUNK, most + 1 - len(content)))
            except BlockingIOError:  # a writer has the pipe open, and has written nothing more yet
                _wait(file, deadline)
                continue
            if chunk:
                content += chunk
            elif content or not stat.S_ISFIFO(mode) or not _wait(file, deadline) & select.POLLIN:
                break  # the end of the file, or a first writer that closed the pipe without writing
        return Content(bytes(content), mode)
    except TimeoutError:
        reason = f"the pipe or device did not give all its content within {seconds:g} s"
        raise TimeoutError(errno.ETIMEDOUT, reason, str(path)) from None
    finally:
        os.close(file)


def _wait(file: int, deadline: float) -> int:
    """Wait for content or for the end of a pipe; returns the events of poll. Raises TimeoutError."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    if not events:
        raise TimeoutError
    return events[0][1]

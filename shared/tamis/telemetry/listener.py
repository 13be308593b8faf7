"""Listening sockets that keep some file descriptors free for the service itself."""

from __future__ import annotations

import resource
import socket
import time
from typing import Any

from tamis.telemetry.logs import get_logger

_log = get_logger("http")

# Descriptors that are kept for journal, spool and Kafka: so many, or a quarter of a lower limit.
_KEPT_FILES = 100
_WARNING_SECONDS = 60.0


class Listener(socket.socket):
    """A listening socket that closes new connections while the process has nearly as many open files as it
    may. Without a file left, asyncio would log thousands of errors a second, and the service could not
    write its own files.
    """

    _warned = float("-inf")

    def accept(self) -> tuple[socket.socket, Any]:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        one, address = super().accept()
        # A new file gets the least number that is free.
        if limit == resource.RLIM_INFINITY or one.fileno() < limit - min(_KEPT_FILES, limit // 4):
            return one, address
        one.close()
        if time.monotonic() > self._warned + _WARNING_SECONDS:
            self._warned = time.monotonic()
            _log.warning(
                "new connections are closed: this process may have only few open files",
                limit=limit,
                hint="raise its limit (ulimit -n, LimitNOFILE), or let senders share connections",
            )
        raise BlockingIOError  # asyncio then looks whether there is another connection

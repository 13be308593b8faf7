"""Free TCP ports on loopback."""

from __future__ import annotations

import random
import socket

# Below the ports that Linux gives to outgoing connections (32768 and up). A client that retries a stopped
# server on such a port can connect to itself, and then the server can't bind its port again.
_PORTS = range(20_000, 32_768)
_ATTEMPTS = 200


def free_ports(count: int) -> list[int]:
    """`count` different free ports of 127.0.0.1. Raises OSError if it finds too few."""
    held: list[socket.socket] = []
    try:
        # System randomness, so that programs with the same seed don't choose the same port.
        for port in random.SystemRandom().sample(_PORTS, _ATTEMPTS):
            taken = socket.socket()
            try:
                # As servers do: a port whose last connections are in TIME_WAIT is free.
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("127.0.0.1", port))
            except OSError:
                taken.close()
                continue
            held.append(taken)
            if len(held) == count:
                return [each.getsockname()[1] for each in held]
        raise OSError(f"no {count} free ports on 127.0.0.1 among {_ATTEMPTS} of {_PORTS}")
    finally:
        for each in held:
            each.close()

"""TLS handshake of an HTTP server's connection, within the server's limits of time and number.

asyncio starts a protocol after the handshake, and gives each handshake a minute. Clients that connect and
send nothing would occupy a connection each for that time, without being counted. This protocol counts a
connection from its beginning, gives the handshake as much time as the headers of a request have, and then
passes the connection to the HTTP protocol.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from tamis.web.connection_limits import Gate, LimitedProtocol, Limits, limited

# asyncio waits 30 s for a client to end TLS, too. A refused client would keep its connection for so long,
# uncounted.
SHUTDOWN_SECONDS = 1.0


class TlsHandshake(asyncio.Protocol):
    """Protocol of one connection until its handshake is done."""

    gate: Gate
    http: type[LimitedProtocol]
    context: Callable[[], ssl.SSLContext]

    def __init__(self, **options: Any) -> None:
        """`options`: those of the HTTP protocol."""
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._early: list[bytes] = []  # what came before the HTTP protocol had the connection
        self.address = ""
        self._lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        if self.gate.enter(self) is not None:
            transport.abort()  # without TLS there is no way to answer
            return
        transport.pause_reading()  # until the TLS protocol reads
        self._task = self._loop.create_task(self._shake_hands())

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self.gate.leave(self)

    @property
    def rate(self) -> float:
        """No bytes of a request have come."""
        return 0.0

    @property
    def may_be_given_up(self) -> bool:
        """True if the handshake has had `safe_seconds`."""
        return self._loop.time() - self._began >= self.gate.limits.safe_seconds

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Close the connection; without TLS it can't be answered."""
        self.gate.leave(self)
        self._transport.abort()

    async def _shake_hands(self) -> None:
        try:
            transport = await self._loop.start_tls(
                self._transport,
                self,
                self.context(),
                server_side=True,
                ssl_handshake_timeout=self.gate.limits.header_seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except (
            OSError
        ):  # also of TLS, and if it took too long: such clients are not logged, anybody can be one
            self._transport.abort()
            return
        finally:
            self.gate.leave(self)
        if transport is None or self._lost:  # asyncio also returns the transport of a lost connection
            return
        http = self.http(**self._options)
        transport.set_protocol(http)
        http.connection_made(transport)
        for data in self._early:
            http.data_received(data)


def limited_tls(
    context: Callable[[], ssl.SSLContext], limits: Limits | None = None
) -> type[asyncio.Protocol]:
    """The protocol class of one server with TLS. `context` returns the TLS context of a new connection."""
    http = limited(limits)
    members = {"gate": http.gate, "http": http, "context": staticmethod(context)}
    return type("LimitedTls", (TlsHandshake,), members)

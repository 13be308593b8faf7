"""Connection limits of an HTTP server: time, rate and number, against slow clients.

A client that sends the headers or the body of a request slowly, or not at all, occupies a connection and
counts as a request in progress. uvicorn limits neither. This protocol answers a request that is too slow
with 408. If the maximum number of requests is reached, a new request replaces the slowest incomplete one.
So clients that send their requests at once are served, however many slow clients are connected.

asyncio starts a protocol after the TLS handshake, and gives each handshake a minute. Clients that connect and
send nothing would occupy a connection each for that time, without being counted. `TlsHandshake` counts a
connection from its beginning, gives the handshake as much time as the headers of a request have, and then
passes the connection to the HTTP protocol.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from tamis.web.problems import status_problem

# A body that was refused is read on, since many clients look for the answer only when they have sent all. If
# so many bytes of it come in vain, the connection ends.
MOST_UNREAD = 4 * 2**20


@dataclass(frozen=True)
class Limits:
    """Limits of one server. A connection that waits for its next request isn't counted."""

    header_seconds: float = 10.0  # until the headers of a request are complete
    grace_seconds: float = 5.0  # after this time `body_rate` is required
    body_rate: float = 1_000.0  # bytes a second, on average since the request began
    connections: int = 240  # of all clients; fewer than the requests that `Guard` admits
    per_address: int = 128
    safe_seconds: float = 1.0  # during this time a request isn't replaced by another one


class Connection(Protocol):
    """One connection of a server, as its limits see it."""

    address: str

    @property
    def rate(self) -> float:
        """Bytes per second of the request in progress."""
        ...

    @property
    def may_be_given_up(self) -> bool:
        """True if another connection may replace this one."""
        ...

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Refuse the request in progress, and close the connection."""
        ...


class Gate:
    """The connections of one server with a request in progress; belongs to its event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._busy: dict[Connection, None] = {}
        self._addresses: Counter[str] = Counter()

    def enter(self, one: Connection) -> HTTPStatus | None:
        """Count a connection whose request begins; returns the status of a refusal at the limit."""
        limits = self.limits
        if self._addresses[one.address] >= limits.per_address:
            if not self._give_up_slowest(one.address):
                return HTTPStatus.TOO_MANY_REQUESTS
        elif len(self._busy) >= limits.connections and not self._give_up_slowest(None):
            return HTTPStatus.SERVICE_UNAVAILABLE
        self._busy[one] = None
        self._addresses[one.address] += 1
        return None

    def leave(self, one: Connection) -> None:
        """The request or the connection has ended."""
        if one in self._busy:
            del self._busy[one]
            self._addresses[one.address] -= 1
            if not self._addresses[one.address]:
                del self._addresses[one.address]

    def _give_up_slowest(self, address: str | None) -> bool:
        slow = [one for one in self._busy if address in (None, one.address) and one.may_be_given_up]
        if not slow:
            return False
        victim = min(slow, key=lambda one: one.rate)
        victim.refuse(
            HTTPStatus.REQUEST_TIMEOUT, "the server is busy, and this request was the slowest; send it faster"
        )
        return True


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol of one connection, with the limits of the server's `gate`."""

    gate: Gate

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.address = ""
        self._began: float | None = None  # start of the request in progress
        self._got = 0  # bytes of that request
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        client: tuple[str, int] | None = self.client
        self.address = client[0] if client else ""
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._began is None and not self._begin():
            return
        self._got += len(data)
        super().data_received(data)
        if self._in_headers and self._got > MOST_UNREAD:
            self.transport.close()

    def on_response_complete(self) -> None:
        self._end()
        super().on_response_complete()
        if not self._in_headers:
            self._begin()  # the next request is already in the buffer

    @property
    def rate(self) -> float:
        """Bytes per second of the request in progress."""
        return self._got / max(self._seconds, 1e-3)

    @property
    def may_be_given_up(self) -> bool:
        """True if the request waits for its client and has had `safe_seconds`."""
        return self._waits and self._seconds >= self.gate.limits.safe_seconds

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer an incomplete request, and close the connection."""
        self._end()
        if self.transport.is_closing():
            return  # with TLS, it waits for its client to close as well
        if self._in_headers or not self.cycle.response_started:
            answer = status_problem(status, detail)
            headers = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
            self.transport.write(line + headers + b"connection: close\r\n\r\n" + bytes(answer.body))
        self.transport.close()

    def _begin(self) -> bool:
        self._began, self._got = self.loop.time(), 0
        status = self.gate.enter(self)
        if status is not None:
            self.refuse(status, "too many requests are in progress; try again later")
            return False
        self._timer = self.loop.call_later(1.0, self._look)
        return True

    def _end(self) -> None:
        self._began = None
        self.gate.leave(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        limits, seconds = self.gate.limits, self._seconds
        if self._waits and self._in_headers and seconds >= limits.header_seconds:
            detail = f"the headers did not arrive within {limits.header_seconds:g} s"
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, detail)
        elif self._waits and not self._in_headers and self._too_slow:
            detail = f"the body arrives at less than {limits.body_rate:g} bytes a second"
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, detail)
        if self._began is not None:
            self._timer = self.loop.call_later(min(1.0, limits.grace_seconds), self._look)

    @property
    def _too_slow(self) -> bool:
        return self._seconds >= self.gate.limits.grace_seconds and self.rate < self.gate.limits.body_rate

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else self.loop.time() - self._began

    @property
    def _in_headers(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    @property
    def _waits(self) -> bool:
        """True if the request is incomplete because of its client, while the server does read."""
        return self._in_headers or (self.cycle.more_body and not self.flow.read_paused)


def limited(limits: Limits | None = None) -> type[LimitedProtocol]:
    """The protocol class of one server."""
    return type("Limited", (LimitedProtocol,), {"gate": Gate(limits or Limits())})


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

"""HTTP server of `/metrics`, `/healthz` and `/readyz` in its own thread, by default on loopback.

Its sockets keep some file descriptors free for the service itself.
"""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tamis.errors import UnavailableError
from tamis.telemetry.health import Health
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.threads import WorkerThread
from tamis.web.connection_limits import Limits, limited, limited_tls
from tamis.web.guard import Guard
from tamis.web.tls import Certificates

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


def telemetry_routes(metrics: Metrics, health: Health) -> list[Route]:
    """The three routes, for services that already have an HTTP server."""

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    async def healthz(_: Request) -> Response:
        alive, text = health.liveness()
        return PlainTextResponse(text + "\n", status_code=200 if alive else 503)

    async def readyz(_: Request) -> Response:
        ready, text = health.readiness()
        return PlainTextResponse(text + "\n", status_code=200 if ready else 503)

    return [Route("/metrics", show_metrics), Route("/healthz", healthz), Route("/readyz", readyz)]


class HttpServer:
    """A Starlette (or FastAPI) application on uvicorn in a daemon thread."""

    def __init__(
        self,
        application: Starlette,
        host: str,
        port: int,
        limits: Limits | None = None,
        certificates: Certificates | None = None,
        *,
        ending: Callable[[], None] | None = None,
    ) -> None:
        """With `certificates` the server speaks HTTPS. `stop` calls `ending`, which ends answers that would
        otherwise go on, such as streams of events.
        """
        self._ending = ending
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # asyncio sets TCP_NODELAY only on sockets that name their protocol. Without it the body of an answer
        # is sent when the client has acknowledged its head, which takes 40 ms on Linux.
        self._socket = Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise self._refused(error, f"{host}:{port}") from error
        self.host, self.port = self._socket.getsockname()[:2]
        config = uvicorn.Config(
            application,
            http=limited(limits) if certificates is None else limited_tls(certificates.current, limits),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=3,
        )
        self._scheme = "http" if certificates is None else "https"
        self._server = uvicorn.Server(config)
        self._thread = WorkerThread("http", lambda: self._server.run(sockets=[self._socket]))

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"{self._scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def start(self) -> None:
        """Serve in the background; clients that connect before the thread runs wait."""
        try:
            # Two sockets can be bound to one port until the first of them listens.
            self._socket.listen()
        except OSError as error:
            raise self._refused(error, f"{self.host}:{self.port}") from error
        self._thread.start()

    def _refused(self, error: OSError, where: str) -> UnavailableError:
        self._socket.close()
        what, hint = f"can't listen: {error.strerror}", "choose another port, 0 for a free one"
        return UnavailableError(what, where=where, hint=hint)

    def check(self) -> None:
        """Raises DeadThreadError if the server has ended without `stop`."""
        self._thread.check()

    def stop(self) -> None:
        """Finish the requests in progress, within a few seconds, and stop."""
        if self._ending is not None:
            self._ending()
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


class TelemetryServer(HttpServer):
    """A server with the telemetry routes only."""

    def __init__(
        self,
        metrics: Metrics,
        health: Health,
        host: str = "127.0.0.1",
        port: int = 0,
        hosts: Iterable[str] = (),
    ) -> None:
        """`hosts`: further names of this server, which `Guard` can't know."""
        guard = Middleware(Guard, body_limit=0, hosts=(host, *hosts))
        super().__init__(Starlette(routes=telemetry_routes(metrics, health), middleware=[guard]), host, port)

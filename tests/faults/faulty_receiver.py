"""A web server for notifications that can be slow, fail, reset connections, or show another certificate."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tamis.local.broker_security import Certificate

# SO_LINGER with no time: the kernel resets the connection in place of an orderly end.
_RESET = struct.pack("ii", 1, 0)


class FaultyReceiver:
    """Remembers in `accepted` how often it accepted each notification, by its Idempotency-Key.

    `fault`: "" (none), "slow" (an answer after `delay` seconds), "fail" (HTTP status 500) or "reset".
    """

    def __init__(self, fault: str, delay: float = 30.0, certificate: Certificate | None = None) -> None:
        self.fault, self.delay = fault, delay
        self.requests = 0
        self.accepted: Counter[str] = Counter()
        self.order: list[str] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                fault = outer.fault
                with outer._lock:
                    outer.requests += 1
                if fault == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    self.close_connection = True
                    return
                if fault == "slow":
                    outer._closing.wait(outer.delay)
                if fault != "fail":
                    mark = self.headers["idempotency-key"]
                    with outer._lock:
                        outer.accepted[mark] += 1
                        outer.order.append(mark)
                self.send_response(500 if fault == "fail" else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Requests are counted, not printed."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self) -> tuple[socket.socket, object]:
                accepted, address = super().get_request()
                if outer._tls is None:
                    return accepted, address
                # The handshake is in the thread of the request, so that one that fails stops nobody.
                wrapped = outer._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
                return wrapped, address

            def handle_error(self, *_: object) -> None:
                """Clients that go away, and handshakes that fail, are a part of the test."""

        if certificate is not None:
            self.show(certificate)
        self._server = Server(("127.0.0.1", 0), Handler)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def show(self, certificate: Certificate) -> None:
        """Have this certificate for new connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        self._tls = context

    def close(self) -> None:
        """End it."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

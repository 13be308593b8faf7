"""An HTTP server that answers as a registry would: for tests of what commands make of the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@contextmanager
def answering(answers: Mapping[str, Any], received: list[tuple[str, bytes]] | None = None) -> Iterator[str]:
    """The URL of a server on loopback that answers a path, with its query or with any, with its document, and
    others with status 404. It appends the path and the body of each request to `received`.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if received is not None:
                received.append((path, body))
            asked = self.path if self.path in answers else path
            known = asked in answers
            answer = orjson.dumps(answers[asked] if known else {"detail": f"nothing at {path}"})
            self.send_response(200 if known else 404)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

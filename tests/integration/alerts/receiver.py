"""Web server that receives notifications."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


class Receiver:
    """A web server that remembers what was posted; it fails the first `failures` times, always for the keys
    in `refused`, and answers nobody while `open` isn't set.
    """

    def __init__(self, failures: int = 0) -> None:
        self.posted: list[tuple[str, dict[str, str], Any]] = []
        self.failures = failures
        self.refused: set[str] = set()
        self.open = threading.Event()
        self.open.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if not outer.open.wait(60):
                    return
                refused = bool(outer.refused) and orjson.loads(body)["key"][0] in outer.refused
                failing = refused or outer.failures > 0
                outer.failures -= failing and not refused
                if not failing:
                    headers = {k.lower(): v for k, v in self.headers.items()}
                    outer.posted.append((self.path, headers, orjson.loads(body)))
                self.send_response(503 if failing else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Requests are looked at in `posted`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

"""The commands of docs/connect.md that follow a growing file send all lines, also those that come later."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.unit.repository.test_tutorial import REPOSITORY

PAGE = (REPOSITORY / "docs" / "connect.md").read_text()
COMMANDS = {
    name: block
    for block in re.findall(r"```sh\n(tail .*?)```", PAGE, re.DOTALL)
    for name in re.findall(r"-F (\S+)", block)
}
LINES = {
    "readings.csv": [
        "station,ts,temp,rh",
        "k1,2026-01-01T06:00:00Z,21.5,40",
        "k2,2026-01-01T06:00:01Z,-3,41.5",
        "k1,2026-01-01T06:00:02Z,22,40",
    ],
    "readings.ndjson": [
        '{"station": "k1", "ts": "2026-01-01T06:00:00Z", "temp": 21.5, "rh": 40}',
        '{"station": "k2", "ts": "2026-01-01T06:00:01Z", "temp": -3, "rh": 41.5}',
        '{"station": "k1", "ts": "2026-01-01T06:00:02Z", "temp": 22, "rh": 40}',
    ],
}


@contextmanager
def edge() -> Iterator[tuple[int, queue.Queue[Any]]]:
    """A server in place of an edge; what it got."""
    got: queue.Queue[Any] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put((self.path, orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], got
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", LINES)
def test_a_file_that_grows_is_followed(tmp_path: Path, name: str) -> None:
    file, lines = tmp_path / name, LINES[name]
    file.write_text("\n".join(lines[:-1]) + "\n")
    with edge() as (port, got):
        block = COMMANDS[name].replace("8282", str(port))
        followed = subprocess.Popen(["bash", "-c", block], cwd=tmp_path, start_new_session=True)
        try:
            found = [got.get(timeout=30) for _ in range(2)]
            with file.open("a") as growing:
                growing.write(lines[-1] + "\n")
            found.append(got.get(timeout=30))
        finally:
            os.killpg(followed.pid, signal.SIGTERM)
            followed.wait()
    assert found == [
        ("/v1/streams/air", {"station": "k1", "ts": "2026-01-01T06:00:00Z", "temp": 21.5, "rh": 40}),
        ("/v1/streams/air", {"station": "k2", "ts": "2026-01-01T06:00:01Z", "temp": -3, "rh": 41.5}),
        ("/v1/streams/air", {"station": "k1", "ts": "2026-01-01T06:00:02Z", "temp": 22, "rh": 40}),
    ]
    assert got.empty()

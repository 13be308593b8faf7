"""A child process of the fleet: one SIGTERM, and no modules from the working directory."""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tamis.errors import UnavailableError
from tamis.local.service_process import ServiceProcess

# As Python leaves: the handler is gone while the process still ends.
LEAVING = """
import signal, time
def leave(*_):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print("leaving", flush=True)
    time.sleep(1)
    raise SystemExit(0)
signal.signal(signal.SIGTERM, leave)
print("up", flush=True)
time.sleep(60)
"""


def test_a_process_that_is_leaving_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", LEAVING]
    monkeypatch.setattr("tamis.local.service_process.with_parent_death_signal", lambda _: command)
    process = ServiceProcess("edge", [], {}, tmp_path / "edge.log", "http://127.0.0.1:9/readyz")
    process.start()
    try:
        _until(process, "up")
        process.ask_to_stop()
        _until(process, "leaving")
        assert process.stop() == 0
    finally:
        process.kill()


def test_modules_of_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "grp", "click", "tamis"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the working directory')\n")
    monkeypatch.chdir(tmp_path)
    process = ServiceProcess("edge", ["edge", "--help"], {}, tmp_path / "edge.log", "http://127.0.0.1:9/")
    process.start()
    try:
        deadline = time.monotonic() + 20
        while process.exit_code() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert (process.exit_code(), "working directory" in process.log.read_text()) == (0, False)
    finally:
        process.kill()


def test_readiness_has_the_text_of_the_service(tmp_path: Path) -> None:
    class Waiting(BaseHTTPRequestHandler):
        code, text = 503, b"Spark is starting\nkafka: away\n"

        def do_GET(self) -> None:
            self.send_response(self.code)
            self.end_headers()
            self.wfile.write(self.text)

        def log_message(self, *_: object) -> None:
            pass

    process = ServiceProcess("joiner", ["edge", "--help"], {}, tmp_path / "log", "http://127.0.0.1:9/readyz")
    with HTTPServer(("127.0.0.1", 0), Waiting) as server:
        url = f"http://127.0.0.1:{server.server_port}/readyz"
        answering = ServiceProcess("joiner", [], {}, tmp_path / "log", url)
        answering._arguments = [sys.executable, "-c", "import time; time.sleep(60)"]
        thread = Thread(target=server.serve_forever)
        thread.start()
        answering.start()
        try:
            assert answering.readiness() == (False, "Spark is starting; kafka: away")
            assert not answering.is_ready()
            Waiting.code, Waiting.text = 200, b"ready\n"
            assert answering.readiness() == (True, "ready") and answering.is_ready()
        finally:
            answering.kill()
            server.shutdown()
            thread.join()
    process._arguments = answering._arguments
    process.start()
    try:
        assert process.readiness() == (False, "starting")
        assert str(process.late(3.0)).startswith("joiner is not ready after 3 s")
    finally:
        process.kill()
    with pytest.raises(UnavailableError, match="joiner ended with exit code -9"):
        process.readiness()


def _until(process: ServiceProcess, word: str) -> None:
    deadline = time.monotonic() + 20
    while word not in process.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)

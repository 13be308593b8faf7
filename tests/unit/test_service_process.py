"""A child process of the fleet is asked to stop once, however often the launcher asks."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tamis.fleet.process import ServiceProcess

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
    monkeypatch.setattr("tamis.fleet.process.leashed", lambda _: [sys.executable, "-c", LEAVING])
    process = ServiceProcess("edge", [], {}, tmp_path / "edge.log", "http://127.0.0.1:9/readyz")
    process.start()
    try:
        _until(process, "up")
        process.ask_to_stop()
        _until(process, "leaving")
        assert process.stop() == 0
    finally:
        process.kill()


def _until(process: ServiceProcess, word: str) -> None:
    deadline = time.monotonic() + 20
    while word not in process.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)

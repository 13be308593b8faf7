"""A child process of the fleet: one SIGTERM, and no modules from the working directory."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

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


def _until(process: ServiceProcess, word: str) -> None:
    deadline = time.monotonic() + 20
    while word not in process.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""Report of test workers that the system ended: the signal, and where each thread was."""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

_FRAMES = 60  # lines of a report: those of the thread that failed come first
_report: pytest.StashKey[Path] = pytest.StashKey()
_reports: list[str] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the interpreter of a worker write where it was when a signal ended it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        path = _path(os.getpid())
        # Open as long as the worker lives. The handler set by pytest writes to the middle of the output.
        faulthandler.enable(file=os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        session.config.stash[_report] = path


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the file of a worker that ends as it should."""
    path = config.stash.get(_report, None)
    if path is not None:
        path.unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Keep the report of a worker that has crashed."""
    if error is None:
        return
    worker = node.gateway._io.popen
    code = worker.wait()
    ending = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    path = _path(worker.pid)
    lines = path.read_text().splitlines()[:_FRAMES] if path.exists() else []
    path.unlink(missing_ok=True)
    _reports.append("\n".join([f"{node.gateway.id} was ended by {ending}", *lines]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the reports at the end, where they are looked for."""
    for report in _reports:
        terminalreporter.section("crashed worker")
        terminalreporter.write_line(report)


def _path(process: int) -> Path:
    return Path(tempfile.gettempdir()) / f"tamis-test-worker-{process}.txt"

"""One service of the fleet as a child process: started, waited for, stopped, killed, never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from tamis.errors import UnavailableError
from tamis.fleet.leash import leashed

# A stopped service commits, flushes and leaves within this time; what still runs then is killed.
STOP_SECONDS = 15.0


class ServiceProcess:
    """`tamis <arguments>` in a process of its own, its output in `log`."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path, ready_url: str
    ) -> None:
        self.name = name
        self.log = log
        self._arguments = [sys.executable, "-m", "tamis.cli", *arguments]
        self._environment = {**os.environ, **environment}
        self._ready_url = ready_url
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = False

    def start(self) -> None:
        """Start it; its output is appended to the log."""
        self._asked = False
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                leashed(self._arguments),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Ctrl-C in a terminal is for the launcher, which stops all in order.
                start_new_session=True,
            )

    @property
    def started(self) -> bool:
        """Whether `start` was ever called."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running().pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll() if self._process else None

    def is_ready(self) -> bool:
        """Whether its `/readyz` says so; an exit is an error that shows the log's end."""
        code = self._running().poll()
        if code is not None:
            raise UnavailableError(
                f"{self.name} ended with exit code {code}", hint=f"its log ends:\n{self._tail()}"
            )
        try:
            return httpx.get(self._ready_url, timeout=2).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def wait_ready(self, timeout: float, stopping: threading.Event | None = None) -> None:
        """Wait until it is ready, or until `stopping` is set."""
        deadline = time.monotonic() + timeout
        while not (stopping and stopping.is_set()) and not self.is_ready():
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"{self.name} is not ready after {timeout:.0f} s", hint=f"its log ends:\n{self._tail()}"
                )
            time.sleep(0.1)

    def ask_to_stop(self) -> None:
        """Send SIGTERM, once: a second one would end Python while it leaves, with another exit code."""
        if self._process and self._process.poll() is None and not self._asked:
            self._asked = True
            self._process.terminate()

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """SIGTERM, then SIGKILL for what is left of its session after `timeout`; returns the exit code."""
        process = self._running()
        self.ask_to_stop()
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return process.wait()

    def kill(self) -> None:
        """SIGKILL to it and to all of its session (Spark's JVM and Python workers are its children)."""
        process = self._running()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it was gone already
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise UnavailableError(f"{self.name} was not started")
        return self._process

    def _tail(self, lines: int = 15) -> str:
        return (
            "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""
        )

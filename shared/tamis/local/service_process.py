"""One service of the fleet as a child process, which ends with its parent."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import orjson

from tamis.errors import UnavailableError
from tamis.local.parent_death_signal import with_parent_death_signal

# Below the ports that Linux gives to outgoing connections (32768 and up). A client that retries a stopped
# server on such a port can connect to itself, and then the server can't bind its port again.
_PORTS = range(20_000, 32_768)
_ATTEMPTS = 200

# `httpx.get` makes a new client each time, and reads the certificates of all authorities for it, which takes
# 35 ms. Connections aren't kept: a service may be killed between two requests.
_CLIENT = httpx.Client(timeout=2, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

# A service commits, flushes and ends within this time after SIGTERM; after it, SIGKILL follows.
STOP_SECONDS = 15.0
# What a service says, or would say, before it knows what it waits for.
STARTING = "starting"


def free_ports(count: int) -> list[int]:
    """`count` different free ports of 127.0.0.1. Raises OSError if it finds too few."""
    held: list[socket.socket] = []
    try:
        # System randomness, so that programs with the same seed don't choose the same port.
        for port in random.SystemRandom().sample(_PORTS, _ATTEMPTS):
            taken = socket.socket()
            try:
                # As servers do: a port whose last connections are in TIME_WAIT is free.
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("127.0.0.1", port))
            except OSError:
                taken.close()
                continue
            held.append(taken)
            if len(held) == count:
                return [each.getsockname()[1] for each in held]
        raise OSError(f"no {count} free ports on 127.0.0.1 among {_ATTEMPTS} of {_PORTS}")
    finally:
        for each in held:
            each.close()


class ServiceProcess:
    """`tamis <arguments>` in its own process, with its output in `log`."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path, ready_url: str
    ) -> None:
        self.name = name
        self.log = log
        # With -P, and with the variable in its child processes, a module in the working directory, such as a
        # `json.py`, can't replace a module of Python or of Tamis.
        self._arguments = [sys.executable, "-P", "-m", "tamis.cli", *arguments]
        self.environment = dict(environment)  # of the next start, beside the variables of this process
        self._ready_url = ready_url
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._began = 0  # offset in the log at which the current process began

    def start(self) -> None:
        """Start the process; its output is appended to the log."""
        self._asked = False
        with self.log.open("ab") as out:
            self._began = out.tell()
            self._process = subprocess.Popen(
                with_parent_death_signal(self._arguments),
                env={**os.environ, **self.environment, "PYTHONSAFEPATH": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Ctrl-C in a terminal must reach only the parent, which stops all processes in order.
                start_new_session=True,
            )

    def launch(self) -> None:
        """`start` that raises UnavailableError if the system refuses."""
        try:
            self.start()
        except OSError as error:
            raise UnavailableError(
                f"the system refuses: {error.strerror}", where=str(error.filename or self.name)
            ) from error

    @property
    def started(self) -> bool:
        """True if `start` was ever called."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running().pid

    def exit_code(self) -> int | None:
        """The exit code; None while the process runs. Once it has ended, its child processes are killed."""
        if self._process is None:
            return None
        if self._process.returncode is None and _has_ended(self._process.pid):
            # Before it is reaped: until then no other session can get its number.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.poll()

    def last_error(self) -> str | None:
        """The last error that the current process logged; None if it logged none."""
        if not self.log.exists():
            return None
        with self.log.open("rb") as file:
            file.seek(self._began)
            return _error_in(file.read().decode(errors="replace").splitlines())

    @property
    def log_path(self) -> str:
        """The path of the log."""
        return str(self.log)

    def is_ready(self) -> bool:
        """True if `/readyz` answers with OK. Raises UnavailableError if the process has ended."""
        return self.readiness()[0]

    def readiness(self) -> tuple[bool, str]:
        """True if `/readyz` answers with OK, and its text: what the service waits for. Raises
        UnavailableError if the process has ended.
        """
        self._running()
        code = self.exit_code()
        if code is not None:
            raise UnavailableError(
                f"{self.name} ended with exit code {code}", hint=f"its log ends:\n{self._tail()}"
            )
        try:
            answer = _CLIENT.get(self._ready_url)
        except httpx.TransportError:
            return False, STARTING
        return answer.status_code == httpx.codes.OK, "; ".join(answer.text.split("\n")).rstrip("; ")

    def wait_ready(self, timeout: float, stopping: threading.Event | None = None) -> None:
        """Wait until the service is ready, or until `stopping` is set."""
        deadline = time.monotonic() + timeout
        while not (stopping and stopping.is_set()) and not self.is_ready():
            if time.monotonic() > deadline:
                raise self.late(timeout)
            time.sleep(0.1)

    def late(self, seconds: float) -> UnavailableError:
        """The error of a service that isn't ready after some time."""
        return UnavailableError(
            f"{self.name} is not ready after {seconds:.0f} s", hint=f"its log ends:\n{self._tail()}"
        )

    def ask_to_stop(self) -> None:
        """Send SIGTERM, but only once: a second one during the shutdown would change the exit code."""
        if self._process and self.exit_code() is None and not self._asked:
            self._asked = True
            self._process.terminate()

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """Send SIGTERM, after `timeout` seconds SIGKILL to its session; returns the exit code."""
        process = self._running()
        self.ask_to_stop()
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return process.wait()

    def kill(self) -> None:
        """Send SIGKILL to all processes of its session (Spark's JVM and Python workers are its children)."""
        process = self._running()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # the session has ended already
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise UnavailableError(f"{self.name} was not started")
        return self._process

    def _tail(self, lines: int = 15) -> str:
        return (
            "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""
        )


def _has_ended(pid: int) -> bool:
    """True if this child process has ended; it isn't reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _error_in(lines: Sequence[str]) -> str | None:
    """The error that ended a command: its message, as text or as a JSON event, or a traceback's last line."""
    for line in reversed(lines):
        if line.startswith("Error: "):
            return line.removeprefix("Error: ")
        if line.startswith("Traceback"):
            return lines[-1]
        with suppress(orjson.JSONDecodeError):
            event = orjson.loads(line)
            if isinstance(event, dict) and event.get("level") == "error":
                return str(event.get("event"))
    return None

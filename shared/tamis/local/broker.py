"""Embedded Kafka: a real broker as a child process, one node on loopback."""

from __future__ import annotations

import fcntl
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tamis.errors import InputError, TamisError, UnavailableError
from tamis.java import class_archives
from tamis.java.jars import jars
from tamis.java.runtime import find_java
from tamis.local.broker_security import ADMIN, BrokerSecurity
from tamis.local.broker_settings import HOST, Listener, new_cluster_id, write_settings
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import free_ports
from tamis.settings.common import OTHERS, private_directory

_LOCK_SECONDS = 5.0

_CLUSTER = "cluster.id="

_SERIOUS = re.compile(r" (ERROR|FATAL) |Exception: ")


class EmbeddedKafka:
    """One Kafka node whose data, settings and logs are in `directory`.

    On Linux the broker ends with the process and with the thread that called `start`. A broker that was
    stopped or killed can be started again with its data and on the same port. It also goes on with data that
    another instance left in the directory.

    `listeners` are further ports. With `security` all ports have TLS, and `bootstrap` takes only clients with
    a certificate. `class_archive` are the options of Java for an archive of classes.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        heap: str = "512m",
        listeners: Sequence[Listener] = (),
        security: BrokerSecurity | None = None,
        *,
        class_archive: Sequence[str] | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self.security = security
        self._listeners = (*listeners, *(security.listeners() if security else ()))
        self._port = port
        self._controller_port: int | None = None
        self._heap = heap
        self._class_archive = class_archives.options("broker") if class_archive is None else class_archive
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address of the broker's own port, `host:port`; known after the first start."""
        if self._port is None:
            raise TamisError("the broker has no port before its first start", where=str(self.directory))
        return f"{HOST}:{self._port}"

    @property
    def running(self) -> bool:
        """True if the broker's process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise TamisError("the broker doesn't run", where=str(self.directory))
        return self._process.pid

    @property
    def name(self) -> str:
        """The name in messages."""
        return "kafka"

    @property
    def log_path(self) -> str:
        """The path of the log."""
        return str(self.directory / "broker.log")

    def start(self, timeout: float = 60.0, stopping: threading.Event | None = None) -> str:
        """Start the broker, wait until it answers, and return the bootstrap string. Returns early if
        `stopping` is set.

        Raises InputError if the port is taken, TamisError if the broker ends during its start, and
        UnavailableError if it doesn't answer within `timeout` seconds or if Java or its jars are missing.
        """
        if self.running:
            return self.bootstrap
        deadline = time.monotonic() + timeout
        self.launch(timeout)
        self.wait_ready(deadline - time.monotonic(), stopping)
        try:
            if self.security and not (stopping and stopping.is_set()):
                self.security.create_users(self.bootstrap)
        except BaseException:
            self.kill()
            raise
        return self.bootstrap

    def wait_ready(self, timeout: float = 60.0, stopping: threading.Event | None = None) -> None:
        """Wait until a broker that was launched answers, or until `stopping` is set. If it doesn't answer,
        it is killed, and the error is that of `start`.
        """
        try:
            self._wait_until_it_answers(time.monotonic() + timeout, timeout, stopping)
        except BaseException:
            self.kill()
            raise

    def launch(self, timeout: float = 60.0) -> None:
        """Start the broker without waiting until it answers (`is_ready`). Raises as `start`. `timeout` limits
        the wait for the directory's lock, and the formatting of the data directory.
        """
        private_directory(self.directory)
        with self._lock(time.monotonic() + timeout) as lock:
            self._choose_ports()
            self._launch(lock, timeout)

    def exit_code(self) -> int | None:
        """The exit code; None while the broker runs, and before its first start."""
        return self._process.poll() if self._process else None

    def is_ready(self) -> bool:
        """True if this broker answers, and not another one on its port."""
        if not _somebody_listens(int(self.bootstrap.rpartition(":")[2])):
            return False
        return _cluster_that_answers(self.admin_config()) == self._cluster_id()

    def admin_config(self) -> dict[str, Any]:
        """Configuration of a client of confluent-kafka that may do everything."""
        if self.security is None:
            return {"bootstrap.servers": self.bootstrap, "log_level": 0}
        return {**self.security.certificate_settings(ADMIN, self.bootstrap).client_config(), "log_level": 0}

    def last_error(self) -> str | None:
        """The last error in the log; None if it has none."""
        serious = [line for line in self._written("broker.log") if _SERIOUS.search(line)]
        return serious[-1] if serious else None

    def stop(self, timeout: float = 30.0) -> None:
        """Shut the broker down cleanly; kill it if it still runs after `timeout` seconds. Idempotent."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL). Idempotent."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self, timeout: float = 60.0) -> str:
        """Stop the broker if it runs, and start it with the same data on the same port."""
        self.stop()
        return self.start(timeout)

    def log_tail(self, lines: int = 15) -> str:
        """The last errors and the last lines of the log, for an error message."""
        said: list[str] = []
        for name in ("broker.log", "broker.out"):
            written = self._written(name)
            serious = [line for line in written[:-lines] if _SERIOUS.search(line)]
            said += serious[-lines:] + written[-lines:]
        return "\n  ".join(said)

    def _cluster_id(self) -> str | None:
        """The id that the data directory was formatted with; None before."""
        lines = self._written("data/meta.properties")
        return next((line.removeprefix(_CLUSTER) for line in lines if line.startswith(_CLUSTER)), None)

    def _written(self, name: str) -> list[str]:
        path = self.directory / name
        return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _choose_ports(self) -> None:
        if self._port is None:
            self._port, self._controller_port = free_ports(2)
        elif self._controller_port is None:
            (self._controller_port,) = free_ports(1)
        for port in (self._port, *(listener.port for listener in self._listeners)):
            if _somebody_listens(port):
                raise InputError(f"port {port} is taken", where=f"{HOST}:{port}", hint="choose another port")

    @contextmanager
    def _lock(self, deadline: float) -> Iterator[int]:
        """Lock the directory against other brokers; yields the lock's file descriptor, which the broker's
        process inherits.

        Kafka has its own lock, but takes it late in its start: a second broker on the same directory would
        already read files that the first one still writes. If a parent was just killed, its broker may take a
        moment to end.
        """
        patience = min(deadline, time.monotonic() + _LOCK_SECONDS)
        with (self.directory / ".lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > patience:
                        raise InputError(
                            "another broker is using this directory",
                            where=str(self.directory),
                            hint="stop it, or choose another directory",
                        ) from None
                    time.sleep(0.1)
                else:
                    break
            yield file.fileno()

    def _launch(self, lock: int, timeout: float) -> None:
        assert self._port is not None
        assert self._controller_port is not None
        secured = self.security.broker_settings() if self.security else None
        settings = write_settings(self.directory, self._port, self._controller_port, self._listeners, secured)
        command = [
            find_java(),
            f"-Xmx{self._heap}",
            # One node on one machine is seldom busy for long. Java's second compiler would cost more in the
            # first minutes than it saves later.
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            *self._class_archive,
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            *(self.security.java_options() if self.security else ()),
            "-cp",
            str(jars("broker")[0].parent / "*"),
        ]
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(command, settings, timeout)
        with (self.directory / "broker.out").open("wb") as out:
            self._process = subprocess.Popen(
                with_parent_death_signal([*command, "kafka.Kafka", str(settings)]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                umask=OTHERS,
                # Ctrl-C in a terminal must reach only the parent, which stops the services before the broker.
                start_new_session=True,
                # The broker holds the lock for as long as it runs.
                pass_fds=(lock,),
            )

    def _format(self, command: list[str], settings: Path, timeout: float) -> None:
        """Format the data directory with a cluster's id; Kafka refuses a directory without one."""
        tool = [*command, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", new_cluster_id()]
        try:
            done = subprocess.run(
                [*tool, "-c", str(settings)],
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                umask=OTHERS,
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"Kafka did not format its data directory within {timeout:g} s", where=str(self.directory)
            ) from error
        if done.returncode:
            raise TamisError(
                f"Kafka could not format its data directory:\n  {done.stdout}{done.stderr}",
                where=str(self.directory / "data"),
                hint="check that the directory can be written to and that the disk has room",
            )

    def _wait_until_it_answers(
        self, deadline: float, timeout: float, stopping: threading.Event | None
    ) -> None:
        assert self._process is not None
        while not (stopping and stopping.is_set()):
            code = self._process.poll()
            if code is not None:
                if any("Address already in use" in line for line in self._written("broker.log")):
                    raise InputError(
                        f"another program has taken port {self._port} while Kafka started",
                        where=self.bootstrap,
                        hint="start again, or choose another port",
                    )
                raise TamisError(
                    f"Kafka ended with exit code {code}; its log ends:\n  {self.log_tail()}",
                    where=str(self.directory),
                )
            if self.is_ready():
                return
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"Kafka did not answer within {timeout:g} s; its log ends:\n  {self.log_tail()}",
                    where=str(self.directory),
                )
            time.sleep(0.1)


def _somebody_listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def _cluster_that_answers(config: dict[str, Any]) -> str:
    """The id of the cluster at an address; empty if none answers. A broker registers in its cluster as the
    last step of its start.
    """
    try:
        found = AdminClient(config).list_topics(timeout=2)
    except KafkaException:
        return ""
    return str(found.cluster_id) if found.brokers else ""

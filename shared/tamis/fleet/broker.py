"""A real Kafka broker as a child process: KRaft, one node, loopback only."""

from __future__ import annotations

import base64
import fcntl
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tamis.errors import InputError, TamisError, UnavailableError
from tamis.fleet.jars import jars
from tamis.fleet.java import find_java
from tamis.fleet.leash import leashed
from tamis.fleet.ports import free_ports

_HOST = "127.0.0.1"
_LOCK_SECONDS = 5.0

#: What one node needs where Kafka's defaults are made for a cluster; the container of the tests uses it too.
SINGLE_NODE_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "BROKER",
    "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # 50 partitions of each would cost one node a second at every start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # A broker that was killed comes back only when its last session has ended, by default after 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # Nobody waits for more members of a group to show up.
    "group.initial.rebalance.delay.ms": "0",
    # The registry makes the topics, all with the same number of partitions.
    "auto.create.topics.enable": "false",
}

# Without this only errors are logged. Each start has a log of its own, and none grows without end.
_LOG4J = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/broker.log
appender.file.filePattern = {directory}/broker.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.start.type = OnStartupTriggeringPolicy
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 5
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""

_SERIOUS = re.compile(r" (ERROR|FATAL) |Exception: ")


class EmbeddedKafka:
    """One Kafka node whose data, settings and logs are in `directory`.

    It never outlives the process that started it (on Linux), nor the thread that called `start`. Stopped or
    killed, it can be started again, with its data and on the same port; data that another instance left in
    the directory is taken up too.
    """

    def __init__(self, directory: Path, port: int | None = None, heap: str = "512m") -> None:
        self.directory = directory.resolve()
        self._port = port
        self._controller_port: int | None = None
        self._heap = heap
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it, `host:port`; known once it was started."""
        if self._port is None:
            raise TamisError("the broker has no port before its first start", where=str(self.directory))
        return f"{_HOST}:{self._port}"

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = 60.0) -> str:
        """Starts it, waits at most `timeout` seconds until it answers, and returns the bootstrap string.

        Raises InputError when the port given is taken, TamisError when the broker ends by itself, and
        UnavailableError when it is not up in time or Java or its jars are not there.
        """
        if self.running:
            return self.bootstrap
        deadline = time.monotonic() + timeout
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._lock(deadline) as lock:
            self._choose_ports()
            self._launch(lock, timeout)
        try:
            self._wait_until_it_answers(deadline, timeout)
        except BaseException:
            self.kill()
            raise
        return self.bootstrap

    def stop(self, timeout: float = 30.0) -> None:
        """Shuts it down in order; kills it when it still runs after `timeout` seconds. Idempotent."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Ends it as a crash would (SIGKILL). Idempotent."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self, timeout: float = 60.0) -> str:
        """Stops it where it runs and starts it with the same data on the same port."""
        self.stop()
        return self.start(timeout)

    def log_tail(self, lines: int = 15) -> str:
        """The last errors and the last lines that the broker wrote, for a message about what went wrong."""
        said: list[str] = []
        for name in ("broker.log", "broker.out"):
            path = self.directory / name
            if path.exists():
                written = path.read_text(encoding="utf-8", errors="replace").splitlines()
                serious = [line for line in written[:-lines] if _SERIOUS.search(line)]
                said += serious[-lines:] + written[-lines:]
        return "\n  ".join(said)

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
        if _somebody_listens(self._port):
            raise InputError(
                f"port {self._port} is taken", where=f"{_HOST}:{self._port}", hint="choose another port"
            )

    @contextmanager
    def _lock(self, deadline: float) -> Iterator[int]:
        """Holds the directory against other brokers, and yields the lock for the broker's process to inherit.

        Kafka has a lock of its own, but takes it late in its start: a second broker on the same directory
        already reads what the first one is still writing. The broker of a parent that was just killed may
        need a moment to go.
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
        settings = self._write_files()
        command = [
            find_java(),
            f"-Xmx{self._heap}",
            # One node on one machine is seldom busy for long: Java's second compiler would cost its first
            # minutes more than it ever gives back.
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            "-cp",
            str(jars("broker")[0].parent / "*"),
        ]
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(command, settings, timeout)
        with (self.directory / "broker.out").open("wb") as out:
            self._process = subprocess.Popen(
                leashed([*command, "kafka.Kafka", str(settings)]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                # Ctrl-C in a terminal is for the parent, which stops the broker after what depends on it.
                start_new_session=True,
                # So the lock lasts exactly as long as the broker does.
                pass_fds=(lock,),
            )

    def _write_files(self) -> Path:
        """Writes the files of settings anew, since the ports may have changed; returns the broker's."""
        log4j = _LOG4J.format(directory=self.directory)
        (self.directory / "log4j2.properties").write_text(log4j, encoding="utf-8")
        settings = {
            **SINGLE_NODE_SETTINGS,
            "listeners": f"BROKER://{_HOST}:{self._port},CONTROLLER://{_HOST}:{self._controller_port}",
            "controller.quorum.voters": f"1@{_HOST}:{self._controller_port}",
            "log.dirs": str(self.directory / "data"),
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return path

    def _format(self, command: list[str], settings: Path, timeout: float) -> None:
        """Kafka refuses a data directory that was not formatted with the identity of a cluster."""
        tool = [*command, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", _cluster_id()]
        try:
            done = subprocess.run(
                [*tool, "-c", str(settings)], capture_output=True, text=True, check=False, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"Kafka did not format its data directory within {timeout:g} s", where=str(self.directory)
            ) from error
        if done.returncode:
            raise TamisError(
                f"Kafka could not format its data directory:\n  {done.stdout}{done.stderr}",
                where=str(self.directory / "data"),
                hint="see that the directory can be written to and that the disk has room",
            )

    def _wait_until_it_answers(self, deadline: float, timeout: float) -> None:
        assert self._process is not None
        while True:
            code = self._process.poll()
            if code is not None:
                raise TamisError(
                    f"Kafka ended by itself with code {code}; its last words:\n  {self.log_tail()}",
                    where=str(self.directory),
                )
            if _somebody_listens(int(self.bootstrap.rpartition(":")[2])) and _answers(self.bootstrap):
                return
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"Kafka did not answer within {timeout:g} s; its last words:\n  {self.log_tail()}",
                    where=str(self.directory),
                )
            time.sleep(0.1)


def _cluster_id() -> str:
    """A random UUID as Kafka writes one; one that begins with a hyphen would read as an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def _somebody_listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0


def _answers(bootstrap: str) -> bool:
    """Whether it knows itself as a broker of the cluster, which it does last when it starts."""
    try:
        return bool(
            AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=2).brokers
        )
    except KafkaException:
        return False

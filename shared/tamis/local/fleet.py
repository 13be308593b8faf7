"""The whole fleet on one machine: broker, registry, edges, joiner and alerts as processes."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.declarations.file_access import SETTING
from tamis.errors import EXIT_UNAVAILABLE, InputError
from tamis.local.broker import EmbeddedKafka
from tamis.local.fleet_logins import FleetLogins, grant
from tamis.local.service_process import STARTING, ServiceProcess, free_ports
from tamis.local.supervisor import Supervisor
from tamis.messaging.rights import RIGHTS, Right
from tamis.settings import KafkaSettings
from tamis.settings.client import registry_client
from tamis.settings.common import private_directory
from tamis.web.registry_client import difference
from tamis.wording.names import suggest

if TYPE_CHECKING:
    from tamis.query.statements.inline_patterns import Inlined

# Spark and its first batch take about 20 s on two idle cores, and minutes on busy ones.
READY_SECONDS = 300.0
# Exit code of a service when something that it needs is away: EX_TEMPFAIL of sysexits.h.
TRY_AGAIN = 75

_SERVICES = ("kafka", "registry", "joiner", "alerts")
_LOOK_SECONDS = 0.1


def port_or_free(preferred: int) -> int:
    """The preferred port if no process listens on it, else a free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return free_ports(1)[0]
        return preferred


@dataclass(frozen=True)
class EdgeSpec:
    """One edge: its name and its configuration file (None: the default, HTTP for every stream). Beside
    the rights of every edge, it gets `rights` in a secure Kafka.
    """

    name: str
    config: Path | None = None
    rights: tuple[Right, ...] = ()


@dataclass(frozen=True)
class FleetSpec:
    """The parts of a fleet, the directory for its files, and its ports (0: free ones).

    `http_port`: that of the first edge without a configuration. `secure`: Kafka has TLS, passwords, and ACLs
    with exactly the rights of each service. `alerts`: the configuration file of the alerts service; without
    it, only the log is notified. `alerts_rights`: rights for its sinks, in a secure Kafka. `metrics_ports`:
    the ports of services' metrics by name; others get free ports. The registry's metrics are on its own port.
    """

    directory: Path
    edges: Sequence[EdgeSpec]
    partitions: int = 4
    cores: int = 2
    kafka_port: int = 0
    registry_port: int = 0
    http_port: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    secure: bool = False
    alerts: Path | None = None
    alerts_rights: tuple[Right, ...] = ()
    metrics_ports: Mapping[str, int] = field(default_factory=dict)


class Fleet:
    """Starts and stops all processes in the right order. Tests use `processes` to kill single ones.

    `say` gets lines for the user. During a start, `show_waiting` gets what each service that isn't ready
    waits for, by name; it is called several times a second.
    """

    def __init__(
        self,
        spec: FleetSpec,
        say: Callable[[str], None],
        show_waiting: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        names = [edge.name for edge in spec.edges]
        for name in names:
            if name in _SERVICES or names.count(name) > 1:
                raise InputError(
                    f"two processes of the fleet would be called {name!r}",
                    where="edges",
                    hint=f"name each edge differently, and none of them {', '.join(_SERVICES)}",
                )
        for name in spec.metrics_ports:
            if name not in ("joiner", "alerts", *names):
                raise InputError(
                    f"{name!r} has no port of its own for metrics",
                    where="metrics ports",
                    hint=suggest(name, ["joiner", "alerts", *names]),
                )
        self.spec = spec
        self._say, self._show_waiting = say, show_waiting
        spec.directory.mkdir(parents=True, exist_ok=True)
        self._directory("logs")
        port = spec.kafka_port or None
        self.logins = FleetLogins(spec.directory / "logins", port) if spec.secure else None
        self.broker = EmbeddedKafka(
            spec.directory / "kafka",
            port=None if spec.secure else port,
            security=self.logins.security if self.logins else None,
        )
        self.processes: dict[str, ServiceProcess] = {}
        self.telemetry: dict[str, str] = {}  # service -> base URL of its metrics
        self.http_sources: dict[str, str] = {}  # edge without a configuration of its own -> base URL
        self.bootstrap = ""
        self.registry_url = ""

    def start(
        self, sql: Mapping[str, str], stopping: threading.Event | None = None, *, edges_last: bool = False
    ) -> None:
        """Start the broker, the joiner, the registry, apply `sql` (text by file name), start alerts and the
        edges. Returns once all are ready, or early if `stopping` is set.

        A service starts as soon as it can, because each waits for what it needs: Spark takes longest, and
        meanwhile edges already take readings. `edges_last`: the edges start once the joiner is ready, so that
        no reading waits.

        If the directory has a registry's state from an earlier run and `sql` differs from it, the definitions
        in service stay, and a message shows the difference.
        """
        began = time.monotonic()
        self._launch_broker(stopping)
        if stopping is not None and stopping.is_set():
            return
        checkpoint = str(self._directory("joiner"))
        self._add("joiner", ["joiner", "--checkpoint", checkpoint, "--master", f"local[{self.spec.cores}]"])
        self.processes["joiner"].start()
        # Meanwhile the broker starts, since the modules of SQL take a second.
        inlined = {file: self._inlined(text, file) for file, text in sql.items()}
        self._launch_registry([path for one in inlined.values() for path in one.tables])
        self._wait_for_registry(stopping)
        if stopping is not None and stopping.is_set():
            return
        self._apply_all({file: one.text for file, one in inlined.items()})
        self._add("alerts", ["alerts", *(["--config", str(self.spec.alerts)] if self.spec.alerts else [])])
        self.processes["alerts"].start()
        if edges_last:
            self._wait_ready(["joiner", "alerts"], began, stopping)
            self._wait_ready(self._start_edges(), began, stopping)
        else:
            self._wait_ready([*self._start_edges(), "alerts", "joiner"], began, stopping)

    def _start_edges(self) -> list[str]:
        """Start the edges; returns their names."""
        for edge in self.spec.edges:
            self._add_edge(edge)
        names = [edge.name for edge in self.spec.edges]
        for name in names:
            self.processes[name].start()
        return names

    def _apply_all(self, sql: Mapping[str, str]) -> None:
        """Apply several texts without files of patterns, by file name; what the registry has from an earlier
        run stays as it is.
        """
        registry = registry_client(self.registry_url)
        earlier = any(registry.request("GET", f"/v1/{kind}") for kind in ("streams", "alerts"))
        outcomes = [one for file, text in sql.items() for one in registry.apply_sql(text, file, keep=earlier)]
        # If several files define a name, the last one counts.
        for outcome in {(one["kind"], one["name"]): one for one in outcomes if "kind" in one}.values():
            if outcome["result"] == "kept":
                self._say(difference(outcome, self.registry_url))

    def _wait_ready(self, names: Sequence[str], began: float, stopping: threading.Event | None) -> None:
        """Wait until services are ready, and say what they wait for. Raises UnavailableError if that takes
        too long, or if one has ended.
        """
        waiting = dict.fromkeys(names, STARTING)
        deadline = time.monotonic() + READY_SECONDS
        while waiting and not (stopping is not None and stopping.is_set()):
            for name, before in list(waiting.items()):
                ready, reason = self.processes[name].readiness()
                if ready:
                    del waiting[name]
                    self._say(f"{name} ready after {time.monotonic() - began:.0f} s")
                elif reason != before:
                    waiting[name] = reason
                    self._say(f"{name}: {reason}")
                elif time.monotonic() > deadline:
                    raise self.processes[name].late(READY_SECONDS)
            self._show_waiting(waiting)
            if waiting:
                time.sleep(_LOOK_SECONDS)

    def start_registry(self, stopping: threading.Event | None = None) -> None:
        """Start the broker and the registry, which creates the topics. Returns early if `stopping` is set."""
        self._launch_broker(stopping)
        if stopping is None or not stopping.is_set():
            self._launch_registry()
            self._wait_for_registry(stopping)

    def _launch_broker(self, stopping: threading.Event | None) -> None:
        """Start the broker, unless it runs. Services may start after this: they wait until it answers. A
        secure broker answers already, because services need their rights and passwords from the beginning.
        """
        self._show_waiting({"kafka": STARTING})
        if self.logins is None:
            if not self.broker.running:
                self.broker.launch()
            self.bootstrap = self.broker.bootstrap
            return
        own = self.broker.start(stopping=stopping)
        self.bootstrap = self.logins.bootstrap
        if not (stopping and stopping.is_set()):
            more = [right for edge in self.spec.edges for right in edge.rights]
            grant(self.broker, (*RIGHTS, *more, *self.spec.alerts_rights))
            self.logins.write_environments(own)

    def _launch_registry(self, tables: Sequence[str] = ()) -> None:
        """Start the registry's process. `tables`: the only files that it may read, unless TAMIS_TABLES is
        set.
        """
        port = self.spec.registry_port or free_ports(1)[0]
        self.registry_url = f"http://127.0.0.1:{port}"
        self._add("registry", ["registry", "--port", str(port)], telemetry=port)
        files = [path for path in map(os.path.abspath, tables) if os.path.isfile(path)]
        if not os.environ.get(SETTING):
            permitted = os.pathsep.join(path for path in dict.fromkeys(files) if os.pathsep not in path)
            self.processes["registry"].environment.setdefault(SETTING, permitted)
        self.processes["registry"].start()

    def _wait_for_registry(self, stopping: threading.Event | None) -> None:
        """Wait for the broker and the registry."""
        self.broker.wait_ready(stopping=stopping)
        if stopping is not None and stopping.is_set():
            return
        self._say(f"kafka ready at {self.bootstrap}")
        self._show_waiting({"registry": STARTING})
        self.processes["registry"].wait_ready(READY_SECONDS, stopping)
        self._say(f"registry ready at {self.registry_url}")

    def kafka_settings(self) -> KafkaSettings:
        """The settings of a client that may read all topics of the fleet."""
        return self.logins.settings("operator") if self.logins else KafkaSettings(bootstrap=self.bootstrap)

    def apply(self, sql: str, file: str | None = None, *, keep: bool = False) -> list[dict[str, Any]]:
        """Apply SQL at the registry. Raises TamisError; mistakes are at `file`:line:column. `keep`: a
        definition that is in service in another form stays as it is. Files of patterns are read here.
        """
        return registry_client(self.registry_url).apply_sql(self._inlined(sql, file).text, file, keep=keep)

    def _inlined(self, sql: str, file: str | None) -> Inlined:
        """SQL with the values of patterns instead of their files. Raises SqlErrors."""
        from tamis.query.statements.inline_patterns import inline_patterns

        inlined = inline_patterns(sql, file)
        for notice in inlined.notices:
            self._say(notice)
        return inlined

    def ended(self) -> str | None:
        """The name of a service that has ended unasked; None while all run."""
        return next((name for name, p in self.processes.items() if p.exit_code() is not None), None)

    def supervisor(self) -> Supervisor:
        """The supervisor that restarts processes from now on; use it in the thread that called `start`."""
        return Supervisor([self.broker, *self.processes.values()], self._say)

    def stop(self) -> dict[str, int]:
        """Stop all processes, edges first so that no reading is cut off; returns the exit codes by name."""
        codes: dict[str, int] = {}
        edges = [edge.name for edge in self.spec.edges]
        for group in (edges, ["joiner", "alerts", "registry"]):
            present = [name for name in group if name in self.processes and self.processes[name].started]
            for name in present:
                self.processes[name].ask_to_stop()
            for name in present:
                codes[name] = self.processes[name].stop()
        self.broker.stop()
        return codes

    def _add_edge(self, edge: EdgeSpec) -> None:
        arguments = ["edge", "--name", edge.name]
        if edge.config:
            arguments += ["--config", str(edge.config)]
        else:
            port = (0 if self.http_sources else self.spec.http_port) or free_ports(1)[0]
            arguments += ["--http-port", str(port)]
            self.http_sources[edge.name] = f"http://127.0.0.1:{port}"
        self._add(edge.name, arguments)

    def _directory(self, name: str) -> Path:
        return private_directory(self.spec.directory / name)

    def _add(self, name: str, arguments: list[str], telemetry: int | None = None) -> None:
        port = telemetry or self.spec.metrics_ports.get(name) or free_ports(1)[0]
        environment = {
            "TAMIS_KAFKA_BOOTSTRAP": self.bootstrap,
            "TAMIS_DATA": str(self._directory(name)),
            "TAMIS_TELEMETRY_PORT": str(port),
            "TAMIS_PARTITIONS": str(self.spec.partitions),
            EXIT_UNAVAILABLE: str(TRY_AGAIN),
            **(self.logins.environment(name if name in _SERVICES else "edge") if self.logins else {}),
            **self.spec.environment,
        }
        log = self.spec.directory / "logs" / f"{name}.log"
        self.telemetry[name] = f"http://127.0.0.1:{port}"
        self.processes[name] = ServiceProcess(
            name, arguments, environment, log, f"{self.telemetry[name]}/readyz"
        )

"""The whole fleet on this machine: broker, registry, edges, joiner and alerts as processes over one Kafka."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamis.errors import InputError
from tamis.fleet.broker import EmbeddedKafka
from tamis.fleet.ports import free_ports
from tamis.fleet.process import ServiceProcess
from tamis.fleet.registry_client import apply_sql

# Spark and its first batch take about 20 s on two cores, but minutes where others want them too.
READY_SECONDS = 300.0
EDGE_HTTP_PORT = 8282

_SERVICES = ("kafka", "registry", "joiner", "alerts")


def port_or_free(preferred: int) -> int:
    """The preferred port where nobody listens on it, else a free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return free_ports(1)[0]
        return preferred


@dataclass(frozen=True)
class EdgeSpec:
    """One edge: its name and its configuration file (None: the default, HTTP for every stream)."""

    name: str
    config: Path | None = None


@dataclass(frozen=True)
class FleetSpec:
    """What to run, where its files go, and on which ports (0: free ones)."""

    directory: Path
    edges: Sequence[EdgeSpec]
    partitions: int = 4
    cores: int = 2
    kafka_port: int = 0
    registry_port: int = 0
    environment: dict[str, str] = field(default_factory=dict)


class Fleet:
    """Starts and stops everything in the right order; tests that break things reach its processes."""

    def __init__(self, spec: FleetSpec, say: Callable[[str], None]) -> None:
        names = [edge.name for edge in spec.edges]
        for name in names:
            if name in _SERVICES or names.count(name) > 1:
                raise InputError(
                    f"two processes of the fleet would be called {name!r}",
                    where="edges",
                    hint=f"name each edge differently, and none of them {', '.join(_SERVICES)}",
                )
        self.spec = spec
        self._say = say
        spec.directory.mkdir(parents=True, exist_ok=True)
        (spec.directory / "logs").mkdir(exist_ok=True)
        self.broker = EmbeddedKafka(spec.directory / "kafka", port=spec.kafka_port or None)
        self.processes: dict[str, ServiceProcess] = {}
        self.telemetry: dict[str, str] = {}  # service -> base URL of its metrics
        self.http_sources: dict[str, str] = {}  # edge without a configuration of its own -> base URL
        self.bootstrap = ""
        self.registry_url = ""

    def start(self, sql: Mapping[str, str], stopping: threading.Event | None = None) -> None:
        """Broker, registry, the statements of `sql` (text by file name), and beside them the joiner, whose
        Spark takes longest; then alerts; the edges last, so that nothing waits. Returns early when
        `stopping` is set.
        """
        began = time.monotonic()
        self.bootstrap = self.broker.start()
        self._add(
            "joiner",
            [
                "joiner",
                "--checkpoint",
                str(self._directory("joiner")),
                "--master",
                f"local[{self.spec.cores}]",
            ],
        )
        self.processes["joiner"].start()
        self.start_registry(stopping)
        if stopping is not None and stopping.is_set():
            return
        for file, text in sql.items():
            self.apply(text, file)
        self._add("alerts", ["alerts"])
        self.processes["alerts"].start()
        self._wait_ready(["joiner", "alerts"], began, stopping)
        edges = [edge.name for edge in self.spec.edges]
        for edge in self.spec.edges:
            self._add_edge(edge)
        for name in edges:
            self.processes[name].start()
        self._wait_ready(edges, began, stopping)

    def _wait_ready(self, names: Sequence[str], began: float, stopping: threading.Event | None) -> None:
        for name in names:
            self.processes[name].wait_ready(READY_SECONDS, stopping)
            self._say(f"{name} ready after {time.monotonic() - began:.0f} s")

    def start_registry(self, stopping: threading.Event | None = None) -> None:
        """The broker, and the registry that creates the topics. Returns early when `stopping` is set."""
        self.bootstrap = self.broker.start()
        self._say(f"kafka ready at {self.bootstrap}")
        port = self.spec.registry_port or free_ports(1)[0]
        self.registry_url = f"http://127.0.0.1:{port}"
        self._add("registry", ["registry", "--port", str(port)], telemetry=port)
        self.processes["registry"].start()
        self.processes["registry"].wait_ready(READY_SECONDS, stopping)
        self._say(f"registry ready at {self.registry_url}")

    def apply(self, sql: str, file: str | None = None) -> list[dict[str, Any]]:
        """Give SQL to the registry. Raises TamisError; mistakes are told as `file`:line:column."""
        return apply_sql(self.registry_url, sql, file)

    def ended(self) -> str | None:
        """The name of a service that has ended by itself, if one has."""
        return next((name for name, p in self.processes.items() if p.exit_code() is not None), None)

    def stop(self) -> dict[str, int]:
        """Stop all, sources first so that nothing is cut off in mid stream; returns the exit codes."""
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
            port = port_or_free(EDGE_HTTP_PORT)
            arguments += ["--http-port", str(port)]
            self.http_sources[edge.name] = f"http://127.0.0.1:{port}"
        self._add(edge.name, arguments)

    def _directory(self, name: str) -> Path:
        path = self.spec.directory / name
        path.mkdir(exist_ok=True)
        return path

    def _add(self, name: str, arguments: list[str], telemetry: int | None = None) -> None:
        port = telemetry or free_ports(1)[0]
        environment = {
            "TAMIS_KAFKA_BOOTSTRAP": self.bootstrap,
            "TAMIS_DATA": str(self._directory(name)),
            "TAMIS_TELEMETRY_PORT": str(port),
            "TAMIS_PARTITIONS": str(self.spec.partitions),
            **self.spec.environment,
        }
        log = self.spec.directory / "logs" / f"{name}.log"
        self.telemetry[name] = f"http://127.0.0.1:{port}"
        self.processes[name] = ServiceProcess(
            name, arguments, environment, log, f"{self.telemetry[name]}/readyz"
        )

"""The registry as a process: settings, telemetry, HTTP and the loop. SIGTERM and SIGINT end it in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from tamis.declarations.file_access import FileAccess
from tamis.heap import collect_seldom
from tamis.messaging.probe import KafkaProbe
from tamis.messaging.schemas.wire_format import Kind
from tamis.settings import KafkaSettings, load
from tamis.settings.common import host_names
from tamis.settings.http_security import http_security
from tamis.settings.known_variables import warn_of_unknown_variables
from tamis.settings.schema_registry import SchemaRegistrySettings
from tamis.telemetry import Health, Metrics, TelemetryServer, configure_logs, get_logger
from tamis.telemetry.health import end_after
from tamis.telemetry.server import HttpServer
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.http.api import application
from tamis_registry.proving.pool import provers_of
from tamis_registry.registry_loop import RegistryLoop
from tamis_registry.settings import RegistryHttpSettings, RegistrySettings


def run(
    settings: RegistrySettings, kafka: KafkaSettings, host: str, port: int, file_access: FileAccess
) -> None:
    """Serve until a signal arrives. `file_access`: the files that tables may name.

    Raises FencedError when another registry has taken over, and InputError if other machines could use the
    API without a token or without TLS.
    """
    configure_logs("registry", settings.log_level, settings.log_format)
    warn_of_unknown_variables()
    security = http_security(load(RegistryHttpSettings), host)
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        if not stopping.is_set():
            stopping.set()
            end_after()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    metrics, health = Metrics("registry"), Health()
    planner = replace(PLANNER, file_access=file_access, register=_register())
    loop = RegistryLoop(kafka, settings.partitions, planner, metrics, health)
    provers = provers_of(file_access, settings.registry_provers, settings.registry_proof_seconds)
    hosts = [host, *host_names(settings.registry_hosts), *settings.telemetry_names]
    api = application(loop, provers, metrics, health, hosts=hosts, tokens=security.tokens)
    server = HttpServer(api, host, port, certificates=security.certificates, ending=api.state.broadcast.close)
    telemetry = _telemetry(settings, metrics, health, server.port)
    security.watch()
    server.start()
    provers.start()
    collect_seldom()
    get_logger("tamis.registry").info("listening", url=server.url, docs=f"{server.url}/docs")
    try:
        with KafkaProbe(kafka, health, service="registry"):
            loop.run(stopping)
    finally:
        provers.close()
        server.stop()
        if telemetry is not None:
            telemetry.stop()


def _telemetry(
    settings: RegistrySettings, metrics: Metrics, health: Health, port: int
) -> TelemetryServer | None:
    """The server of the telemetry port, running. None if there is no such port, or if it is the API's `port`,
    which has the same routes.
    """
    if settings.telemetry_port in (0, port):
        return None
    server = TelemetryServer(
        metrics, health, settings.telemetry_host, settings.telemetry_port, settings.telemetry_names
    )
    server.start()
    return server


def _register() -> Callable[[str, Kind, str], int] | None:
    """Registers schemas of topics; None without a schema registry."""
    access = load(SchemaRegistrySettings).access
    if access is None:
        return None
    from tamis.messaging.schemas.registry import SchemaRegistry

    return SchemaRegistry(access).register

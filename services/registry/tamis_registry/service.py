"""The registry as a process: settings, telemetry, HTTP, the loop; SIGTERM and SIGINT end it in order."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, configure_logs, get_logger
from tamis.telemetry.server import HttpServer
from tamis_registry.http_api import application
from tamis_registry.planning import PLANNER
from tamis_registry.settings import RegistrySettings
from tamis_registry.worker import Worker


def run(settings: RegistrySettings, kafka: KafkaSettings, host: str, port: int) -> None:
    """Serve until a signal comes. Raises FencedError when another registry has taken over."""
    configure_logs("registry", settings.log_level, settings.log_format)
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    metrics, health = Metrics("registry"), Health()
    worker = Worker(kafka, settings.partitions, PLANNER, metrics, health)
    hosts = [name.strip() for name in (host, *settings.registry_hosts.split(",")) if name.strip()]
    server = HttpServer(application(worker, metrics, health, hosts), host, port)
    server.start()
    get_logger("tamis.registry").info("listening", url=server.url, docs=f"{server.url}/docs")
    try:
        worker.run(stopping)
    finally:
        server.stop()

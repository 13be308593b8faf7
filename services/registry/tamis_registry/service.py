"""The registry as a process: settings, telemetry, HTTP, the loop; SIGTERM and SIGINT end it in order."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from types import FrameType

from tamis.collecting import collect_seldom
from tamis.query.reach import Reach
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, configure_logs, get_logger
from tamis.telemetry.server import HttpServer
from tamis_registry.http_api import application
from tamis_registry.planning import PLANNER
from tamis_registry.settings import RegistrySettings
from tamis_registry.worker import Worker


def run(settings: RegistrySettings, kafka: KafkaSettings, host: str, port: int, reach: Reach) -> None:
    """Serve until a signal comes. `reach`: which files tables may name.

    Raises FencedError when another registry has taken over.
    """
    configure_logs("registry", settings.log_level, settings.log_format)
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    metrics, health = Metrics("registry"), Health()
    worker = Worker(kafka, settings.partitions, replace(PLANNER, reach=reach), metrics, health)
    hosts = [name.strip() for name in (host, *settings.registry_hosts.split(",")) if name.strip()]
    server = HttpServer(application(worker, metrics, health, hosts), host, port)
    server.start()
    collect_seldom()
    get_logger("tamis.registry").info("listening", url=server.url, docs=f"{server.url}/docs")
    try:
        worker.run(stopping)
    finally:
        server.stop()

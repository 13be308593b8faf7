"""The edge as a process: signals, health, and the loop until it is stopped."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from tamis.garbage_collection import collect_seldom
from tamis.heap import return_freed_memory
from tamis.messaging.probe import KafkaProbe
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry.health import Health
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.server import TelemetryServer
from tamis.telemetry.stop_deadline import end_after
from tamis_edge.core.warm_up import warm_up
from tamis_edge.edge import Edge
from tamis_edge.http_protection import http_protection
from tamis_edge.settings import EdgeConfig
from tamis_edge.storage.disk_errors import DiskError

_log = get_logger("edge")

CHECK_EVERY = 0.5  # seconds between checks of what the edge needs
RETRY = 1.0  # seconds between attempts to open the databases on a full disk


def serve(config: EdgeConfig, kafka: KafkaSettings, settings: ServiceSettings) -> None:
    """Run an edge until SIGTERM or SIGINT.

    Raises InputError if other machines could use its HTTP sources without a token or without TLS.
    """
    return_freed_memory()
    security = http_protection(config)
    metrics, health = Metrics("edge"), Health()
    data = config.data or settings.data_directory()
    telemetry = TelemetryServer(metrics, health, settings.telemetry_host, settings.telemetry_port)
    stopping = threading.Event()
    edges: list[Edge] = []

    def stop(_: int, __: FrameType | None) -> None:
        stopping.set()
        end_after()
        for edge in edges:
            edge.wake()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    telemetry.start()
    try:
        edge = _open(lambda: Edge(config, data, kafka, metrics, security=security), health, stopping)
    except BaseException:
        telemetry.stop()
        raise
    if edge is None:
        telemetry.stop()
        return
    edges.append(edge)
    warm_up()
    collect_seldom()
    edge.start()
    _log.info("started", edge=config.name, telemetry=telemetry.url, data=str(data))
    try:
        with KafkaProbe(kafka, health, service="edge", planned=edge.topics):
            _turn(edge, health, telemetry, stopping)
    except BaseException as error:
        health.failed(str(error))
        raise
    finally:
        health.not_ready("stopping")
        edge.stop()
        telemetry.stop()


def _turn(edge: Edge, health: Health, telemetry: TelemetryServer, stopping: threading.Event) -> None:
    """Run the loop until the edge is stopped."""
    check_at = 0.0
    while not stopping.is_set():
        telemetry.check()
        busy = edge.turn()
        health.beat()
        if time.monotonic() >= check_at:
            check_at = time.monotonic() + CHECK_EVERY
            for name, trouble in edge.troubles().items():
                health.check(name, trouble)
            health.ready(edge.remark())
        if not busy:
            edge.wait()


def _open(make: Callable[[], Edge], health: Health, stopping: threading.Event) -> Edge | None:
    """Make an edge when the disk has room for its databases; None if it is stopped before that."""
    reason = ""
    while not stopping.is_set():
        health.beat()
        try:
            return make()
        except DiskError as error:
            if str(error) != reason:
                reason = str(error)
                _log.error("waiting for room on the disk", reason=reason)
            health.not_ready(reason)
            stopping.wait(RETRY)
    return None

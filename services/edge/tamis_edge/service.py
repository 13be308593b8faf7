"""The edge as a process: signals, health, and the loop until it is stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from tamis.heap import collect_seldom, return_freed_memory
from tamis.messaging.probe import KafkaProbe
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.settings.private_files import private_directory
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
    """Run an edge until SIGTERM or SIGINT. Before the edge is opened, the caller's handlers are in force.

    Raises InputError if other machines could use its HTTP sources without a token or without TLS.
    """
    return_freed_memory()
    security = http_protection(config)
    metrics, health = Metrics("edge"), Health()
    data = private_directory(config.data) if config.data else settings.data_directory()
    telemetry = TelemetryServer(
        metrics, health, settings.telemetry_host, settings.telemetry_port, settings.telemetry_names
    )
    telemetry.start()
    # Before the handlers are set, since kernels that have to be compiled take long. A signal ends the process
    # meanwhile, and nothing is lost: nothing is open yet.
    warm_up()
    request = _StopRequest()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request.make)

    def make() -> Edge:
        return Edge(config, data, kafka, metrics, security=security, stopping=lambda: request.made)

    try:
        edge = _open(make, health, request)
    except BaseException:
        telemetry.stop()
        raise
    if edge is None:
        telemetry.stop()
        return
    collect_seldom()
    try:
        with KafkaProbe(kafka, health, service="edge", planned=edge.topics) as probe:
            edge.start()
            _log.info("started", edge=config.name, telemetry=telemetry.url, data=str(data))
            try:
                _turn(edge, health, telemetry, request)
            except BaseException as error:
                health.failed(str(error))
                raise
            finally:
                _log.info("stopping")
                end_after()
                health.not_ready("stopping")
                probe.ask_to_end()
                edge.stop()
    finally:
        telemetry.stop()


class _StopRequest:
    """The request of a signal to stop. An event of `threading` isn't safe in a handler: it takes a lock that
    the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self.made = False

    def make(self, _: int, __: FrameType | None) -> None:
        """Note the request; the handler of a signal."""
        self.made = True


def _turn(edge: Edge, health: Health, telemetry: TelemetryServer, request: _StopRequest) -> None:
    """Run the loop until the edge is stopped."""
    check_at = 0.0
    while not request.made:
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


def _open(make: Callable[[], Edge], health: Health, request: _StopRequest) -> Edge | None:
    """Make an edge when the disk has room for its databases; None if it is stopped before that."""
    reason = ""
    while not request.made:
        health.beat()
        try:
            return make()
        except DiskError as error:
            if str(error) != reason:
                reason = str(error)
                _log.error("waiting for room on the disk", reason=reason)
            health.not_ready(reason)
            time.sleep(RETRY)
    return None

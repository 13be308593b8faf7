"""The edge as a process: kernels, protection of HTTP, signals, health, and the loop until it is stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
from pydantic_settings import SettingsConfigDict

from tamis.declarations.watches import Frame, NamedPattern, Watch, WindowFunction
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.vectors import Vector
from tamis.heap import collect_seldom, return_freed_memory
from tamis.messaging.probe import KafkaProbe
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.operators.time_join.filter_dispatch import MIN_INDEXED, Dispatch
from tamis.settings import KafkaSettings, ServiceSettings, load
from tamis.settings.common import private_directory
from tamis.settings.http_security import HttpSecurity, HttpSettings, http_security
from tamis.telemetry.health import Health, end_after
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.server import TelemetryServer
from tamis_edge.core.rows import Batch
from tamis_edge.core.watched_readings import KeySeries
from tamis_edge.edge import Edge
from tamis_edge.settings import EdgeConfig, Http, HttpSource, Tls
from tamis_edge.storage.disk import DiskError


class EdgeHttpSettings(HttpSettings):
    """Tokens and TLS of the HTTP sources, from the environment."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_EDGE_")

    def setting(self, field: str) -> str:
        """The names of a field in the configuration file and in the environment."""
        return f"http.{field.replace('tls_', 'tls.', 1)} (or {super().setting(field)})"


def protection(http: Http, environment: EdgeHttpSettings) -> EdgeHttpSettings:
    """Tokens and TLS of the configuration, with the values of the environment in place of the file's."""
    given = environment.model_dump(exclude_none=True)
    values: dict[str, object] = {"tokens_file": http.tokens_file}
    if not {"tls", "tls_certificate", "tls_key"} & given.keys():
        if isinstance(http.tls, Tls):
            files = http.tls
            values |= {"tls_certificate": files.certificate, "tls_key": files.key}
            values["tls_key_password"] = files.key_password
        else:
            values["tls"] = http.tls
    return EdgeHttpSettings.model_construct(**{**values, **given})


def http_protection(config: EdgeConfig) -> HttpSecurity:
    """The protection of an edge's HTTP sources; nothing if it has none.

    Raises InputError if other machines could use them without a token or without TLS.
    """
    if not any(isinstance(source, HttpSource) for source in config.sources):
        return HttpSecurity()
    return http_security(protection(config.http, load(EdgeHttpSettings)), config.http.host)


def warm_up() -> None:
    """Run every kernel with a few tuples. Compiled kernels are kept on disk for the next start."""
    for state in (OmissionState(2), WindowState(1, 2)):
        _warm_up(state)
    # From this many filters on, the index is used.
    a = Column("", "a", Type.DOUBLE)
    filters = [call(">", a, Literal(float(bound), Type.DOUBLE)) for bound in range(MIN_INDEXED)]
    columns = {"a": Vector(np.zeros(2))}
    Dispatch(filters).over(columns, 2)
    series = KeySeries(("a",))
    average = WindowFunction("avg", a, Frame(1, 0, 1), Type.DOUBLE)
    series.watch([Watch(a, "p", (NamedPattern("p", (0.0, 1.0)),), 0.1), average])
    series.push(Batch(columns, np.arange(2), np.arange(2), np.arange(2)))
    series.watch([])


def _warm_up(state: OmissionState | WindowState) -> None:
    state.offer(
        np.array([1, 0, 0, 0]), np.array([0, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 2.0]), np.arange(4), 0
    )
    state.decide(1, 0)
    state.offer(np.array([0, 1]), np.array([3, 9]), np.array([1.0, 1.0]), np.array([4, 5]), 0)
    state.decide(4, 0)
    state.note_published(np.array([4]))
    state.held()
    state.flush()


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

"""Metrics, health and logs: only metrics of the catalogue, served over HTTP, with the name of the service."""

from __future__ import annotations

import json
import resource
import socket
import sys
import threading

import httpx
import numpy as np
import pytest
from structlog.testing import capture_logs

from tamis.errors import UnavailableError
from tamis.telemetry import Health, Metrics, TelemetryServer, configure_logs, get_logger
from tamis.telemetry.metric_catalogue import CATALOGUE
from tamis.telemetry.threads import DeadThreadError, WorkerThread


def test_catalogue_keeps_its_own_rules() -> None:
    names = [m.name for m in CATALOGUE]
    assert len(names) == len(set(names))
    for metric in CATALOGUE:
        assert metric.name.startswith("tamis_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert "key" not in metric.labels


def test_connections_are_closed_while_few_files_are_left(caplog: pytest.LogCaptureFixture) -> None:
    server = TelemetryServer(Metrics("edge"), Health())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as probe:
        first = probe.fileno()
    # 40 files for connections, beside those that a listener keeps.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min((first + 40) * 4 // 3, first + 140), limits[1]))
    many: list[socket.socket] = []
    try:
        with capture_logs() as logs:
            server.start()
            # The clients are of this process, too: each connection takes two files.
            for _ in range(40):
                many.append(socket.create_connection((server.host, server.port), timeout=5))
            assert many[-1].recv(1) == b""
            for one in many:
                one.close()
            assert httpx.get(f"{server.url}/healthz").status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        server.stop()
    assert [entry["event"].partition(":")[0] for entry in logs] == ["new connections are closed"]
    assert not caplog.records, "asyncio logs each connection that it can't accept"


def test_a_metric_outside_the_catalogue_is_an_error() -> None:
    with pytest.raises(KeyError):
        Metrics("edge").inc("tamis_made_up_total")


def test_gauges_that_are_replaced_are_never_missing_in_a_scrape() -> None:
    """A gauge was removed before it was set again, and a scrape between the two found nothing: an alert on it
    began to wait anew.
    """
    metrics = Metrics("registry")
    name = "tamis_registry_topics"

    def shown() -> dict[str, float | None]:
        samples = {stream: metrics.registry.get_sample_value(name, {"stream": stream}) for stream in "abc"}
        return {stream: value for stream, value in samples.items() if value is not None}

    metrics.set(name, 1, stream="a")
    with metrics.replacing(name):
        metrics.set(name, 2, stream="b")
        assert shown() == {"a": 1, "b": 2}
    assert shown() == {"b": 2}
    with metrics.replacing(name):
        assert shown() == {"b": 2}
        metrics.set(name, 3, stream="c")
        metrics.set(name, 4, stream="b")
    assert shown() == {"b": 4, "c": 3}
    with pytest.raises(ZeroDivisionError), metrics.replacing(name):
        metrics.set(name, 1 / 0, stream="a")
    assert shown() == {"b": 4, "c": 3}  # an error removes nothing
    with metrics.replacing(name):
        pass
    assert not shown()


def test_server_shows_metrics_and_health() -> None:
    now = [0.0]
    metrics, health = Metrics("edge"), Health(stale_after=5, clock=lambda: now[0])
    metrics.inc("tamis_edge_tuples_total", 3, edge="e", stream="s", decision="omitted")
    server = TelemetryServer(metrics, health)
    server.start()
    try:
        with httpx.Client(base_url=server.url) as client:
            text = client.get("/metrics").text
            assert 'tamis_edge_tuples_total{decision="omitted",edge="e",stream="s"} 3.0' in text
            assert client.get("/readyz").status_code == 503
            health.ready()
            assert client.get("/readyz").status_code == 200
            assert client.get("/healthz").status_code == 200
            now[0] = 6.0
            assert client.get("/healthz").status_code == 503
            health.beat()
            assert client.get("/healthz").status_code == 200
    finally:
        server.stop()


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    """Each answer but the first on a connection took 44 ms, the client's delayed acknowledgement."""
    server = TelemetryServer(Metrics("edge"), Health())
    server.start()
    try:
        with httpx.Client() as client:
            client.get(f"{server.url}/healthz")
            (connection,) = server._server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        server.stop()


def test_a_port_that_another_server_takes_before_the_start_is_named() -> None:
    first = TelemetryServer(Metrics("edge"), Health(), port=0)
    second = TelemetryServer(Metrics("edge"), Health(), port=first.port)
    first.start()
    try:
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{first.port}: can't listen: Address already"):
            second.start()
    finally:
        first.stop()


def test_logs_are_json_with_the_service_also_in_other_threads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for of in (sys, threading):
        monkeypatch.setattr(of, "excepthook", of.excepthook)  # as it was, once the test is over
    configure_logs("edge", "info", "json")
    thread = threading.Thread(target=lambda: get_logger("test").info("obeys plan", plan=3))
    thread.start()
    thread.join()
    get_logger("test").debug("not shown")
    configure_logs("edge", "info", "text")
    line = json.loads(capsys.readouterr().err)
    assert line["service"] == "edge"
    assert (line["event"], line["plan"], line["level"]) == ("obeys plan", 3, "info")


def test_a_dead_thread_is_told_and_the_service_no_longer_alive() -> None:
    over = threading.Event()
    thread = WorkerThread("reader", lambda: print(over.wait(10)))
    thread.check()  # not begun yet
    thread.start()
    thread.check()
    over.set()
    thread.join(10)
    with pytest.raises(DeadThreadError, match="'reader' ended unexpectedly"):
        thread.check()
    broken = WorkerThread("writer", lambda: print(1 // 0))
    broken.start()
    broken.join(10)
    with pytest.raises(DeadThreadError, match="'writer' died of ZeroDivisionError"):
        broken.check()
    health = Health()
    health.ready()
    assert health.liveness()[0] and health.readiness()[0]
    health.failed("the writer died")
    health.beat()
    assert health.liveness() == (False, "the writer died")
    assert not health.readiness()[0]


def test_a_loop_that_has_stalled_says_where_it_is_once() -> None:
    now = [0.0]
    health = Health(stale_after=5, clock=lambda: now[0])
    entered, left = threading.Event(), threading.Event()

    def loop() -> None:
        health.beat()
        _a_step_that_waits(entered, left)
        health.beat()

    thread = threading.Thread(target=loop)
    with capture_logs() as logs:
        thread.start()
        assert entered.wait(30) and health.liveness()[0]
        now[0] = 6.0
        for _ in range(2):
            alive, text = health.liveness()
            assert not alive and "_a_step_that_waits (test_telemetry.py:" in text
        left.set()
        thread.join()
        assert health.liveness() == (True, "last turn of the loop 0.0 s ago")
    assert [entry["event"] for entry in logs] == ["the main loop has stalled", "the main loop runs again"]
    assert "_a_step_that_waits (test_telemetry.py:" in logs[0]["step"]


def _a_step_that_waits(entered: threading.Event, left: threading.Event) -> None:
    entered.set()
    assert left.wait(30)


def test_readiness_names_the_checks_that_fail() -> None:
    health = Health()
    health.check("kafka", "away")
    assert health.readiness() == (False, "starting\nkafka: away")
    health.ready()
    health.check("disk", "full")
    assert health.readiness() == (False, "disk: full\nkafka: away")
    health.check("disk", None)
    health.check("kafka", None)
    assert health.readiness() == (True, "ready")


def test_many_observations_count_as_each_would() -> None:
    values = np.array([0.0, 0.05, 0.050001, 0.3, 7.0, 300.0, 301.0, 1e9])
    one, many = Metrics("edge"), Metrics("edge")
    for value in values.tolist():
        one.observe("tamis_edge_hold_seconds", value, edge="e", stream="s")
    many.observe_many("tamis_edge_hold_seconds", values[:3], edge="e", stream="s")
    many.observe_many("tamis_edge_hold_seconds", values[3:], edge="e", stream="s")

    def told(metrics: Metrics) -> dict[bytes, float]:
        lines = [line.rsplit(b" ", 1) for line in metrics.exposition().splitlines()]
        return {name: float(value) for name, value in lines if name.startswith(b"tamis_edge_hold_seconds_")}

    assert told(many) == pytest.approx(told(one))
    assert len(told(one)) > 10

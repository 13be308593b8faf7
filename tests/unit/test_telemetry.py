"""Metrics come from the catalogue only; health and metrics are served; logs are structured and name their
service.
"""

from __future__ import annotations

import json
import sys
import threading

import httpx
import numpy as np
import pytest

from tamis.telemetry import Health, Metrics, TelemetryServer, configure_logs, get_logger
from tamis.telemetry.catalogue import CATALOGUE
from tamis.telemetry.threads import DeadThreadError, WorkerThread


def test_catalogue_keeps_its_own_rules() -> None:
    names = [m.name for m in CATALOGUE]
    assert len(names) == len(set(names))
    for metric in CATALOGUE:
        assert metric.name.startswith("tamis_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert "key" not in metric.labels
        assert bool(metric.buckets) == (metric.kind == "histogram")


def test_a_metric_outside_the_catalogue_is_an_error() -> None:
    with pytest.raises(KeyError):
        Metrics("edge").inc("tamis_made_up_total")


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
    with pytest.raises(DeadThreadError, match="'reader' ended by itself"):
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

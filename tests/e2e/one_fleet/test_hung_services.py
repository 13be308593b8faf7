"""A joiner, an alerts service and a receiver that hang: the registry and the command line say so.

Processes are stopped by SIGSTOP, which closes no connection. In between no reading comes, since a quiet fleet
must not raise a false alarm.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
import pytest
from click.testing import CliRunner
from tests.e2e.fed_fleet import until
from tests.e2e.feeder import PatientFeeder, close_alert
from tests.e2e.one_fleet.conftest import OneFleet

from tamis.cli import main

# The registry counts a service as silent after 15 s. A busy machine may take longer for all else.
NOTICED = 30
QUIET = 25
START = 10_000  # event seconds


class Watched:
    """A fleet with a webhook, and what the registry and the command line say about it."""

    def __init__(self, fed: OneFleet) -> None:
        self.fed, self.receiver = fed, fed.receiver
        self.feeder = PatientFeeder(seed=5, start=START)

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.fed.fleet.registry_url}/v1/{path}", timeout=20).raise_for_status().json()

    def tamis(self, *arguments: str) -> str:
        environment = {"TAMIS_KAFKA_BOOTSTRAP": self.fed.fleet.bootstrap, "COLUMNS": "300"}
        command = [*arguments, "--registry", self.fed.fleet.registry_url]
        return CliRunner().invoke(main, command, env=environment).stdout

    def doctor(self, check: str) -> dict[str, str]:
        found = orjson.loads(self.tamis("doctor", "--format", "json"))
        return next(one for one in found["checks"] if one["check"] == check)

    def sink(self, name: str) -> dict[str, Any]:
        return next((one for one in self.get("sinks") if one["name"] == name), {"state": "", "waiting": 0})

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        """Stop a service and its child processes for the time of the block."""
        group = os.getpgid(self.fed.fleet.processes[service].pid)
        os.killpg(group, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(group, signal.SIGCONT)


def always(what: Callable[[], bool], seconds: float) -> None:
    until_ = time.monotonic() + seconds
    while time.monotonic() < until_:
        assert what()
        time.sleep(1)


@pytest.mark.timeout(600)
def test_hung_services_are_told(one_fleet: OneFleet) -> None:
    watched = Watched(one_fleet)
    watched.receiver.posted.clear()
    try:
        watched.feeder.url = one_fleet.url
        watched.fed.apply(close_alert("close", 2.0))
        watched.fed.running("close")
        watched.feeder.until(START + 40)
        until(lambda: watched.sink("pager")["state"] == "delivering" and watched.receiver.posted != [])
        # A quiet fleet: the joiner has no batch, and yet reports.
        always(lambda: watched.get("joiner")["reported_ago"] < 12, QUIET)
        assert watched.get("joiner")["state"] == "running"
        assert watched.doctor("joiner")["state"] == watched.doctor("sinks")["state"] == "ok"

        with watched.frozen("joiner"):
            until(lambda: watched.get("joiner")["state"] == "silent", NOTICED)
            joiner, alert = watched.get("joiner"), watched.get("alerts/close")
            assert joiner["why"][0].startswith("the joiner has reported nothing since ")
            assert all(topic["slowest"] is None and topic["why"] == [] for topic in joiner["topics"])
            assert alert["state"] == "degraded" and alert["why"][0] == joiner["why"][0]
            assert watched.doctor("joiner")["state"] == "failed"
            shown = watched.tamis("get", "joiner")
            assert "the joiner has reported nothing since" in shown
            # The operator ends this one.
            pid = watched.fed.fleet.processes["joiner"].pid
            assert f"\nall: it is process {pid} on {socket.gethostname()}\n" in shown
        until(lambda: watched.get("joiner")["state"] == "running", 120)

        watched.receiver.close()
        url = watched.receiver.url.removeprefix("http://")
        watched.feeder.close(START + 4_000)  # every episode ends, and the webhook is told of it
        until(lambda: watched.sink("pager")["state"] == "failing", 120)
        sink = watched.sink("pager")
        assert sink["waiting"] > 0 and sink["oldest"] and sink["error"] == "ConnectError: Connection refused"
        shown = watched.tamis("get", "sinks")
        assert "pager" in shown and "Connection refused" in shown
        told = watched.doctor("sinks")
        assert told["state"] == "warning" and "sink pager: " in told["found"]
        for text in (orjson.dumps(sink).decode(), shown, orjson.dumps(told).decode()):
            assert url not in text and "secret" not in text

        with watched.frozen("alerts"):
            until(lambda: watched.sink("pager")["state"] == "silent", NOTICED)
            assert "the alerts service has reported nothing" in watched.sink("log")["why"][0]
            assert watched.doctor("sinks")["state"] == "failed"
        until(lambda: watched.sink("pager")["state"] == "failing")
    finally:
        watched.feeder.end()

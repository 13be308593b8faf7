"""Fault 11: the registry is killed and loses its disk amid changes, and a second registry takes over."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import orjson
import pytest
from tests.faults.loaded_fleet import LoadedFleet, loaded_fleet

from tamis.errors import TamisError
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import PLANS
from tamis.settings.client import registry_client

KILLS, TAKEOVERS = 5, 2
pytestmark = [pytest.mark.faults, pytest.mark.timeout(2400)]


def test_registries(tmp_path: Path) -> None:
    with loaded_fleet(tmp_path, seed=11) as fed:
        fed.begin()
        changes = Changes(fed.fleet.registry_url)
        with fed.load.running(pause=0.3):
            for _ in range(KILLS):
                with changes.running():
                    time.sleep(3)
                    fed.fleet.processes["registry"].kill()
                    shutil.rmtree(fed.fleet.spec.directory / "registry")
                    (fed.fleet.spec.directory / "registry").mkdir()
                    time.sleep(1)
                    fed.fleet.processes["registry"].start()
                    fed.fleet.processes["registry"].wait_ready(120)
                    time.sleep(2)
                _holds(fed.fleet.registry_url, changes)
            for _ in range(TAKEOVERS):
                _two_at_once(fed, changes)
        plans = _plans(fed)
        fed.said(f"registry killed {KILLS} times, {2 * TAKEOVERS} takeovers, {plans} plans", fed.check())
        assert changes.number > KILLS + 2 * TAKEOVERS


class Changes:
    """Alerts that are applied one after the other, each until a registry has taken it. If one registry fails,
    the next of `urls` is asked.
    """

    def __init__(self, *urls: str) -> None:
        self.urls = urls
        self.number = 0
        self.taken = _alerts(urls[0])  # with those of the fleet

    def apply(self) -> None:
        """Apply one more alert. After a failure the answer may be lost, so that the alert may be there."""
        name = f"more{self.number}"
        sql = f"CREATE ALERT {name} AS SELECT station, ts FROM air WHERE temp > {60 + self.number % 9};"
        deadline = time.monotonic() + 120
        for url in cycle(self.urls):
            try:
                registry_client(url).apply_sql(sql, None)
                break
            except TamisError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
                time.sleep(0.3)
        self.taken.add(name)
        self.number += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Apply alerts in the background, with a pause of a second between two."""
        stopping = threading.Event()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                while not stopping.wait(1):
                    self.apply()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(150)
        assert not failures, failures


def _holds(url: str, changes: Changes) -> None:
    """The registry at `url` has exactly the alerts that were taken."""
    assert _alerts(url) == changes.taken


def _alerts(url: str) -> set[str]:
    return {alert["name"] for alert in registry_client(url).request("GET", "/v1/alerts")}


def _two_at_once(fed: LoadedFleet, changes: Changes) -> None:
    """Start a second registry beside the first, which must end; then start the first again, so that the
    second must end. Changes go on meanwhile, to the one of them that takes them.
    """
    first = fed.fleet.processes["registry"]
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    environment = first.environment | {"TAMIS_TELEMETRY_PORT": str(port)}
    log = fed.fleet.spec.directory / "logs" / "second.log"
    second = ServiceProcess("second", ["registry", "--port", str(port)], environment, log, f"{url}/readyz")
    changes.urls = (fed.fleet.registry_url, url)
    try:
        with changes.running():
            second.start()
            second.wait_ready(120)
            _ends(first)
            time.sleep(2)
        _holds(url, changes)
        with changes.running():
            first.start()
            first.wait_ready(120)
            _ends(second)
            time.sleep(2)
        _holds(fed.fleet.registry_url, changes)
    finally:
        changes.urls = (fed.fleet.registry_url,)
        if second.started and second.exit_code() is None:
            second.kill()


def _ends(registry: ServiceProcess) -> None:
    deadline = time.monotonic() + 60
    while registry.exit_code() is None:
        assert time.monotonic() < deadline, "two registries go on"
        time.sleep(0.2)
    assert registry.exit_code() == 2
    assert "another registry has taken over" in (registry.last_error() or "")


def _plans(fed: LoadedFleet) -> int:
    """The number of plans; no version has two contents, and versions rise in each partition."""
    with TopicReader(fed.fleet.kafka_settings().client_config(), [PLANS]) as reader:
        records = [(record.partition, record.value) for record in reader.snapshot() if record.value]
    contents: dict[int, set[bytes]] = {}
    for partition in {partition for partition, _ in records}:
        versions = [orjson.loads(value)["version"] for other, value in records if other == partition]
        assert versions == sorted(versions)
    for _, value in records:
        contents.setdefault(orjson.loads(value)["version"], set()).add(value)
    assert all(len(values) == 1 for values in contents.values())
    return len(contents)

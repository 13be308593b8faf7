"""Webhooks that are slow, fail, reset connections or show a wrong certificate, beside one that works."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from tests.faults.faulty_receiver import FaultyReceiver
from tests.fixtures.certificates import issue_server
from tests.integration.alerts.receiver import Receiver
from tests.integration.alerts.test_alerts import SECOND, World, until

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_security import Authority
from tamis.local.scrape import Scrape
from tamis.messaging.topics import ALARMS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

# The waits between attempts grow to 30 s. After a minute they are as long as after ten.
FAULT_SECONDS = float(os.environ.get("TAMIS_FAULT_SECONDS", "60"))
KEYS = 1_500
# Each event has such a row. The 3,000 events that wait for each sink have 60 MB, and take more in memory.
NOTE = "x" * 20_000
# Each of six sinks keeps events of 8 MB, as bytes and as parsed rows. Without this limit it were 378 MB.
MOST_GROWTH = 280 * 2**20


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[dict[str, FaultyReceiver]]:
    right, wrong = Authority(tmp_path / "right"), Authority(tmp_path / "wrong")
    issue_server(right, "hook")
    found = {
        "works": FaultyReceiver(""),
        "slow": FaultyReceiver("slow"),
        "fails": FaultyReceiver("fail"),
        "resets": FaultyReceiver("reset"),
        "wrong-tls": FaultyReceiver("", certificate=issue_server(wrong, "hook")),
    }
    yield found
    for receiver in found.values():
        receiver.close()


def test_every_notification_arrives_and_no_sink_waits_for_another(
    empty: EmbeddedKafka, tmp_path: Path, receivers: dict[str, FaultyReceiver]
) -> None:
    unused = Receiver()
    world = World(empty, tmp_path, unused)
    ca = tmp_path / "right" / "ca.pem"
    trusted = f", ca: '{ca}'"
    world.configure(
        *(
            f"- {{kind: webhook, name: {name}, url: '{one.url}'{trusted if name == 'wrong-tls' else ''}}}"
            for name, one in receivers.items()
        )
    )
    process = world.worker("alerts")
    marks = {key: f"k{key}" for key in range(KEYS)}
    try:
        process.start()
        process.wait_ready(60)
        memory = psutil.Process(process.pid)
        before, began = memory.memory_info().rss, time.monotonic()
        for key in marks.values():
            write(world, key)
        world.frontier(100)
        until(lambda: len(receivers["works"].accepted) == 2 * KEYS, FAULT_SECONDS)
        held_back = time.monotonic() - began
        most = 0
        while time.monotonic() < began + FAULT_SECONDS:
            most = max(most, memory.memory_info().rss)
            time.sleep(0.5)
        telemetry = process._ready_url.removesuffix("/readyz")
        for name in ("slow", "fails", "resets", "wrong-tls"):
            assert receivers[name].requests or name == "wrong-tls"
            assert not set(receivers[name].accepted) - set(receivers["works"].accepted)
            scrape = Scrape.of(telemetry)
            waiting = scrape.total("tamis_notifications_waiting", sink=name)
            unread = scrape.total("tamis_sink_unread_events", sink=name)
            assert waiting + unread > KEYS, (name, waiting, unread)
        assert not receivers["fails"].accepted and not receivers["wrong-tls"].accepted
        assert most - before < MOST_GROWTH, (before, most)
        print(f"works had all after {held_back:.1f} s; memory {before >> 20} to {most >> 20} MB")
        for receiver in receivers.values():
            receiver.fault = ""
        receivers["wrong-tls"].show(issue_server(Authority(tmp_path / "right"), "hook"))
        for name, receiver in receivers.items():
            until(lambda one=receiver: len(one.accepted) == 2 * KEYS, 180)  # type: ignore[misc]
            assert receiver.accepted.keys() == receivers["works"].accepted.keys(), name
            first = {mark: place for place, mark in reversed(list(enumerate(receiver.order)))}
            closed = [mark for mark in first if mark.endswith(":closed")]
            assert len(closed) == KEYS
            assert all(first[mark.removesuffix("closed") + "opened"] < first[mark] for mark in closed), name
        assert set(receivers["works"].accepted.values()) == {1}
        assert Scrape.of(telemetry).total("tamis_notifications_total", outcome="given_up") == 0
        assert b"Traceback" not in process.log.read_bytes()
    finally:
        process.stop()
        unused.close()


def write(world: World, key: str) -> None:
    """Write an alarm with a large row."""
    value = {
        "alert": "hot",
        "id": key.ljust(32, "x"),
        "key": [key],
        "event_time": SECOND,
        "row": {"t": 1, "note": NOTE},
        "arrived": int(time.time() * 1e6),
    }
    world.producer.produce(ALARMS, orjson.dumps(value), orjson.dumps(["hot", key]))
    world.producer.poll(0)

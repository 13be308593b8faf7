"""The alerts service as a process: alarms become episodes, each notified once, whatever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from faust.types import TP
from pydantic import HttpUrl

from tamis.fleet.broker import EmbeddedKafka
from tamis.fleet.ports import free_ports
from tamis.fleet.process import ServiceProcess
from tamis.messaging.compacted import CompactedReader
from tamis.messaging.records import Frontier, StreamState
from tamis.messaging.topics import ALARMS, EPISODES, FRONTIERS, PLANS
from tamis.planning.build import build_plan
from tamis.planning.plan import Definition, Input, Plan, TimeBound
from tamis.planning.plan_json import encode_plan
from tamis.query.parse import catalog_of
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry import Health, Metrics
from tamis_alerts.config import AlertsConfig, Webhook
from tamis_alerts.faust_consumer import Consumer
from tamis_alerts.service import Setup, run

SECOND = 1_000_000
TOPIC = "tamis.stream.air.1"
PARTITIONS = 2


HOT_ALERT = """CREATE ALERT hot WITH (gap = '8 seconds', severity = 'critical') AS
  SELECT k, t FROM air WHERE t > 30;"""
HOT = f"CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts);\n{HOT_ALERT}\n"


class Receiver:
    """A web server that remembers what was posted; it fails the first `failures` times."""

    def __init__(self, failures: int = 0) -> None:
        self.posted: list[tuple[str, dict[str, str], Any]] = []
        self.failures = failures
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                failing = outer.failures > 0
                outer.failures -= failing
                if not failing:
                    headers = {k.lower(): v for k, v in self.headers.items()}
                    outer.posted.append((self.path, headers, orjson.loads(body)))
                self.send_response(503 if failing else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Requests are looked at in `posted`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class World:
    """A broker with the fleet's topics, a plan with one alert, and an alerts service."""

    def __init__(self, broker: EmbeddedKafka, directory: Path, webhook: Receiver) -> None:
        self.bootstrap, self.webhook = broker.bootstrap, webhook
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        counts = {ALARMS: PARTITIONS, EPISODES: PARTITIONS, FRONTIERS: 1, PLANS: PARTITIONS}
        for made in admin.create_topics([NewTopic(n, c, 1) for n, c in counts.items()]).values():
            made.result(30)
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})
        for partition in range(PARTITIONS):
            self.producer.produce(PLANS, encode_plan(plan()), b"plan", partition=partition)
        self.producer.flush(10)
        (directory / "alerts.yaml").write_text(
            f"sinks:\n- {{kind: webhook, url: '{webhook.url}/hook'}}\n"
            f"- {{kind: alertmanager, url: '{webhook.url}'}}\n"
        )
        (port,) = free_ports(1)
        self.process = ServiceProcess(
            "alerts",
            ["alerts", "--config", str(directory / "alerts.yaml")],
            {
                "TAMIS_KAFKA_BOOTSTRAP": self.bootstrap,
                "TAMIS_DATA": str(directory),
                "TAMIS_TELEMETRY_PORT": str(port),
                "TAMIS_LOG_FORMAT": "json",
            },
            directory / "alerts.log",
            f"http://127.0.0.1:{port}/readyz",
        )

    def apply(self, version: int, sql: str, versions: Mapping[str, int]) -> None:
        """Write the plan of a text of SQL, as the registry does."""
        catalog = catalog_of(sql)
        made = build_plan(version, catalog, partitions=PARTITIONS, versions=versions, topic_numbers={}).plan
        for partition in range(PARTITIONS):
            self.producer.produce(PLANS, encode_plan(made), b"plan", partition=partition)
        self.producer.flush(10)

    def alarm(self, key: str, second: int) -> None:
        value = {
            "alert": "hot",
            "id": f"{key}{second:08}".ljust(32, "x"),
            "key": [key],
            "event_time": second * SECOND,
            "row": {"t": second},
            "arrived": int(time.time() * 1e6),
        }
        self.producer.produce(ALARMS, orjson.dumps(value), orjson.dumps(["hot", key]))

    def frontier(self, second: int) -> None:
        self.producer.flush(10)
        state = StreamState(frontier=second * SECOND, tuples=0, bytes=0, void=False)
        for number in range(PARTITIONS):
            record = Frontier(
                partition=number,
                plan=1,
                topics={TOPIC: state},
                definitions={},
                alarms={},
                late=0,
                parked=0,
                time=0,
            )
            self.producer.produce(FRONTIERS, record.to_bytes(), str(number).encode())
        self.producer.flush(10)

    def episodes(self) -> list[dict[str, Any]]:
        with CompactedReader({"bootstrap.servers": self.bootstrap}, [EPISODES]) as reader:
            return [orjson.loads(r.value) for r in reader.snapshot() if r.value]

    def hooks(self) -> list[tuple[str, str]]:
        return [(b["key"][0], b["event"]) for path, _, b in self.webhook.posted if path == "/hook"]


def plan() -> Plan:
    source = Input("a", "air", TOPIC, "ts", ("k",), None, SECOND)
    definition = Definition(
        alert="hot",
        version=1,
        inputs=(source,),
        equalities=(),
        bounds=(TimeBound("a", "b", -SECOND, SECOND),),
        condition=None,
        select=(),
        severity="critical",
        labels=(("team", "north"),),
        gap=8 * SECOND,
    )
    return Plan(version=1, partitions=PARTITIONS, definitions=(definition,))


def until(what: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


@pytest.fixture
def world(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[World]:
    webhook = Receiver(failures=2)
    world = World(empty, tmp_path, webhook)
    world.process.start()
    try:
        world.process.wait_ready(60)
        yield world
        for line in world.process.log.read_bytes().splitlines():
            assert orjson.loads(line)["service"] == "alerts"
    finally:
        # Of one that was killed the broker would believe for a while that it is still there.
        world.process.stop()
        webhook.close()


def test_alarms_become_episodes_notified_once(world: World) -> None:
    for second in (1, 3, 5, 30):
        world.alarm("k", second)
        world.alarm("k", second)  # the joiner may write an alarm again
    world.frontier(20)
    until(lambda: sorted(world.hooks()) == [("k", "closed"), ("k", "opened"), ("k", "opened")])
    closed = [e for e in world.episodes() if e["event"] == "closed"]
    assert [(e["start"], e["end"], e["alarms"]) for e in closed] == [(SECOND, 5 * SECOND, 3)]
    managers = [b[0] for path, _, b in world.webhook.posted if path == "/api/v2/alerts"]
    assert all(a["labels"] == managers[0]["labels"] for a in managers)
    assert managers[0]["labels"] == {
        "alertname": "hot",
        "key": '["k"]',
        "severity": "critical",
        "team": "north",
    }
    assert world.process.stop() == 0


def test_nothing_is_lost_or_told_twice_over_kills(world: World) -> None:
    keys = [f"k{n}" for n in range(40)]
    for key in keys[:20]:
        world.alarm(key, 1)
    world.producer.flush(10)
    until(lambda: len(world.hooks()) >= 5)
    world.process.kill()
    for key in keys[20:]:
        world.alarm(key, 2)
    world.producer.flush(10)
    world.process.start()
    world.process.wait_ready(60)
    world.frontier(100)
    until(lambda: len({k for k, event in world.hooks() if event == "closed"}) == len(keys), 60)
    closed = [e for e in world.episodes() if e["event"] == "closed"]
    assert {e["key"][0]: e["alarms"] for e in closed} == dict.fromkeys(keys, 1)
    # Between a delivery and its mark in the table a kill makes one repeat, which carries the same identity.
    marks = [h["idempotency-key"] for path, h, _ in world.webhook.posted if path == "/hook"]
    assert len(set(marks)) == 2 * len(keys)
    assert len(marks) - len(set(marks)) <= 1


def test_nothing_is_passed_over_while_it_starts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust fetches while it seeks, then empties its queues: a slow seek would lose what was fetched."""
    keys = [f"k{n}" for n in range(20)]
    world.alarm("k0", 1)  # one partition has a committed offset, the other has none
    world.producer.flush(10)
    until(lambda: world.hooks() == [("k0", "opened")])
    assert world.process.stop() == 0
    for key in keys:
        world.alarm(key, 60)
    world.producer.flush(10)
    seek = Consumer.seek_to_committed

    async def slow(self: Consumer) -> Mapping[TP, int]:
        found = await seek(self)
        await asyncio.sleep(3)
        return found

    monkeypatch.setattr(Consumer, "seek_to_committed", slow)
    setup = Setup(
        AlertsConfig(sinks=[Webhook(kind="webhook", url=HttpUrl(f"{world.webhook.url}/hook"))]),
        KafkaSettings(bootstrap=world.bootstrap),
        ServiceSettings(data=tmp_path),
        Metrics("alerts"),
    )
    stopping = threading.Event()
    running = threading.Thread(target=lambda: asyncio.run(run(setup, Health(), PARTITIONS, stopping)))
    running.start()
    try:
        until(lambda: len(world.hooks()) > len(keys), 60)
    finally:
        stopping.set()
        running.join(30)
    assert sorted(world.hooks()) == sorted([("k0", "opened"), *((key, "opened") for key in keys)])


@pytest.mark.parametrize("statement", ["DROP ALERT hot", "PAUSE ALERT hot"])
def test_the_open_episode_of_an_alert_that_is_dropped_or_paused_is_closed(
    world: World, statement: str
) -> None:
    world.apply(2, HOT, {})
    world.alarm("k", 1)
    world.alarm("k", 3)
    world.frontier(4)
    until(lambda: world.hooks() == [("k", "opened")])
    world.apply(3, f"{HOT}{statement};", {"hot": 2})
    until(lambda: world.hooks() == [("k", "opened"), ("k", "closed")])
    (closed,) = [e for e in world.episodes() if e["event"] == "closed"]
    assert (closed["start"], closed["end"], closed["alarms"]) == (SECOND, 3 * SECOND, 2)
    # Made or resumed anew it begins with an episode of its own.
    world.apply(4, HOT, {})
    world.alarm("k", 5)
    world.producer.flush(10)
    until(lambda: world.hooks()[2:] == [("k", "opened")])
    assert world.episodes()[-1]["episode"] != closed["episode"]


def test_an_episode_goes_on_when_its_alert_is_replaced(world: World) -> None:
    world.apply(2, HOT, {})
    world.alarm("k", 1)
    world.producer.flush(10)
    until(lambda: world.hooks() == [("k", "opened")])
    world.apply(3, f"{HOT}{HOT_ALERT.replace('CREATE', 'CREATE OR REPLACE').replace('> 30', '> 20')}", {})
    world.alarm("k", 4)
    world.frontier(6)  # within the gap
    world.alarm("k", 7)
    world.frontier(30)
    until(lambda: ("k", "closed") in world.hooks())
    assert world.hooks() == [("k", "opened"), ("k", "closed")]
    (closed,) = [e for e in world.episodes() if e["event"] == "closed"]
    assert (closed["start"], closed["end"], closed["alarms"]) == (SECOND, 7 * SECOND, 3)


def test_sigterm_ends_it_in_time(world: World) -> None:
    began = time.monotonic()
    os.kill(world.process.pid, signal.SIGTERM)
    until(lambda: world.process.exit_code() is not None, 10)
    assert world.process.exit_code() == 0
    assert time.monotonic() - began < 10

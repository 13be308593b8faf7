"""The alerts service as a process: alarms become episodes, each notified once, whatever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka import Consumer as Kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from faust.types import TP
from pydantic import HttpUrl
from tests.integration.alerts.receiver import Receiver

from tamis.local.broker import EmbeddedKafka
from tamis.local.scrape import Scrape
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging.records import Frontier, StreamState
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES, FRONTIERS, PLANS
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Definition, Input, Plan, TimeBound
from tamis.planning.build import build_plan
from tamis.query.parse import catalog_of
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry import Health, Metrics
from tamis_alerts.faust_consumer import Consumer
from tamis_alerts.service import GROUP, Setup, run
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sink_settings import Webhook

SECOND = 1_000_000
TOPIC = "tamis.stream.air.1"
PARTITIONS = 2
KEYS_OF_BOTH_PARTITIONS = [f"k{n}" for n in range(8)]


HOT_ALERT = """CREATE ALERT hot WITH (gap = '8 seconds', severity = 'critical') AS
  SELECT k, t FROM air WHERE t > 30;"""
HOT = f"CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts);\n{HOT_ALERT}\n"


class World:
    """A broker with the fleet's topics, a plan with one alert, and an alerts service."""

    def __init__(self, broker: EmbeddedKafka, directory: Path, webhook: Receiver) -> None:
        self.bootstrap, self.webhook = broker.bootstrap, webhook
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        counts = {ALARMS: PARTITIONS, EPISODES: PARTITIONS, FRONTIERS: 1, PLANS: PARTITIONS, DEAD_LETTERS: 1}
        for made in admin.create_topics([NewTopic(n, c, 1) for n, c in counts.items()]).values():
            made.result(30)
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})
        for partition in range(PARTITIONS):
            self.producer.produce(PLANS, encode_plan(plan()), b"plan", partition=partition)
        self.producer.flush(10)
        self._config = directory / "alerts.yaml"
        self.configure(
            f"- {{kind: webhook, url: '{webhook.url}/hook'}}",
            f"- {{kind: alertmanager, url: '{webhook.url}'}}",
        )
        self._directory = directory
        self.process = self.worker("alerts")

    def worker(self, name: str) -> ServiceProcess:
        """One more process of the service, not started."""
        (port,) = free_ports(1)
        return ServiceProcess(
            name,
            ["alerts", "--config", str(self._config)],
            {
                "TAMIS_KAFKA_BOOTSTRAP": self.bootstrap,
                "TAMIS_DATA": str(self._directory),
                "TAMIS_TELEMETRY_PORT": str(port),
                "TAMIS_LOG_FORMAT": "json",
            },
            self._directory / f"{name}.log",
            f"http://127.0.0.1:{port}/readyz",
        )

    def configure(self, *sinks: str) -> None:
        """Have these sinks from the next start on."""
        self._config.write_text("\n".join(("sinks:", *sinks, "")))

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
        with TopicReader({"bootstrap.servers": self.bootstrap}, [EPISODES]) as reader:
            return [orjson.loads(r.value) for r in reader.snapshot() if r.value]

    def committed(self) -> int:
        """How many alarms are done."""
        partitions = [TopicPartition(ALARMS, number) for number in range(PARTITIONS)]
        consumer = Kafka({"bootstrap.servers": self.bootstrap, "group.id": GROUP})
        try:
            return sum(max(0, at.offset) for at in consumer.committed(partitions, timeout=10))
        finally:
            consumer.close()

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
        "k": "k",
        "severity": "critical",
        "team": "north",
    }
    assert world.process.stop() == 0


def test_it_stops_in_time_while_kafka_does_not_answer(world: World, empty: EmbeddedKafka) -> None:
    world.alarm("k", 1)
    world.producer.flush(10)
    until(lambda: ("k", "opened") in world.hooks())
    os.kill(empty.pid, signal.SIGSTOP)
    try:
        time.sleep(2)  # until requests are under way that Kafka doesn't answer
        began = time.monotonic()
        assert world.process.stop(timeout=30.0) == 0
        assert time.monotonic() - began < 10
    finally:
        os.kill(empty.pid, signal.SIGCONT)
    world.process.start()
    world.process.wait_ready(60)
    world.alarm("l", 2)
    until(lambda: ("l", "opened") in world.hooks())


def test_a_sink_that_never_answers_holds_up_no_other(world: World) -> None:
    stalled = Receiver()
    stalled.open.clear()
    world.process.stop()
    world.configure(
        f"- {{kind: webhook, url: '{stalled.url}'}}", f"- {{kind: alertmanager, url: '{world.webhook.url}'}}"
    )
    world.process.start()
    try:
        world.process.wait_ready(60)
        for key in ("a", "b", "c"):
            world.alarm(key, 1)
        world.producer.flush(10)
        # The first attempt alone of the other takes 5 s.
        until(lambda: len(world.webhook.posted) == 3, 4)
    finally:
        stalled.close()


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
    # A kill repeats what was under way and not committed, at most as many as are sent side by side. They
    # carry the same identity.
    marks = [h["idempotency-key"] for path, h, _ in world.webhook.posted if path == "/hook"]
    assert len(set(marks)) == 2 * len(keys)
    assert len(marks) - len(set(marks)) <= 8


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


def test_an_episode_closes_though_a_partition_has_only_expired_alarms(world: World) -> None:
    """Nothing is committed of such a partition, and nothing can be: its first offset is its end."""
    world.process.stop()
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    for key in KEYS_OF_BOTH_PARTITIONS:
        world.alarm(key, 1)
    world.producer.flush(10)
    ends = [TopicPartition(ALARMS, number, OFFSET_END) for number in range(PARTITIONS)]
    lows = [made.result(10).low_watermark for made in admin.delete_records(ends).values()]
    assert all(low > 0 for low in lows)
    world.process.start()
    world.process.wait_ready(60)
    world.alarm("k", 1)
    world.frontier(20)
    until(lambda: world.hooks() == [("k", "opened"), ("k", "closed")], 60)


@pytest.mark.parametrize("ends", [ServiceProcess.kill, ServiceProcess.stop])
def test_every_alarm_counts_once_though_a_worker_ends_in_a_backlog(
    world: World, ends: Callable[[ServiceProcess], object]
) -> None:
    world.process.stop()
    keys, rounds = [f"k{n}" for n in range(10)], 8_000  # some seconds of work
    for second in range(rounds):
        for key in keys:
            world.alarm(key, second)
    world.producer.flush(30)
    world.process.start()
    until(lambda: 0 < world.committed() < rounds * len(keys), 60)
    ends(world.process)
    left = world.committed()
    assert left < rounds * len(keys), "all were taken before the end"
    world.process.start()
    world.process.wait_ready(60)
    world.frontier(rounds + 100)
    until(lambda: sum(event == "closed" for _, event in world.hooks()) >= len(keys), 60)
    closed = [e for e in world.episodes() if e["event"] == "closed"]
    assert {(e["key"][0], e["start"], e["end"], e["alarms"]) for e in closed} == {
        (key, 0, (rounds - 1) * SECOND, rounds) for key in keys
    }


def test_two_workers_share_the_partitions_and_a_third_says_that_it_has_none(world: World) -> None:
    others = [world.worker("second"), world.worker("third")]
    workers = [world.process, *others]

    def said() -> dict[str, list[ServiceProcess]]:
        """The workers by what they say of themselves."""
        found: dict[str, list[ServiceProcess]] = {}
        for worker in workers:
            found.setdefault(httpx.get(worker._ready_url).text, []).append(worker)
        return found

    try:
        for worker in others:
            worker.start()
            worker.wait_ready(60)
        until(lambda: sorted(map(len, said().values())) == [1, 2] and len(said().get("ready\n", ())) == 2, 60)
        busy, idle = sorted(said().items())
        assert idle[0].startswith("ready; this worker has no partition of tamis.alarms")
        url = idle[1][0]._ready_url.removesuffix("/readyz")
        assert Scrape.of(url).total("tamis_alerts_partitions") == 0
        for key in KEYS_OF_BOTH_PARTITIONS:
            world.alarm(key, 1)
        world.producer.flush(10)
        until(lambda: len(world.hooks()) == len(KEYS_OF_BOTH_PARTITIONS))
        # What it has goes to another, with its open episodes.
        assert busy[1][0].stop() == 0
        for key in KEYS_OF_BOTH_PARTITIONS:
            world.alarm(key, 3)
        world.frontier(100)
        until(lambda: len(world.hooks()) == 2 * len(KEYS_OF_BOTH_PARTITIONS), 60)
        closed = [e for e in world.episodes() if e["event"] == "closed"]
        assert {e["key"][0]: e["alarms"] for e in closed} == dict.fromkeys(KEYS_OF_BOTH_PARTITIONS, 2)
        assert len(world.hooks()) == len(set(world.hooks()))
    finally:
        for worker in others:
            worker.stop()


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

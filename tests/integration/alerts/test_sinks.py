"""The queues of sinks with a real broker and real web servers: no notification is lost, none out of order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.alerts.receiver import Receiver

from tamis.cli import main
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis.messaging.heartbeats import SinkState
from tamis.messaging.rights import ALERTS_GROUP
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import DEAD_LETTERS, EPISODES, PLANS
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sinks.all_sinks import Sinks
from tamis_alerts.sinks.sink_queue import MAX_BYTES

PARTITIONS = 2
Headers = dict[str, str | bytes | None]


class Bench:
    """The topics, a web server, and a configuration of one webhook."""

    def __init__(self, broker: EmbeddedKafka, directory: Path) -> None:
        self.kafka = KafkaSettings(bootstrap=broker.bootstrap)
        admin = AdminClient(self.kafka.client_config())
        topics = [NewTopic(EPISODES, PARTITIONS, 1), NewTopic(DEAD_LETTERS, 1, 1), NewTopic(PLANS, 1, 1)]
        for made in admin.create_topics(topics).values():
            made.result(30)
        self.producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
        self.receiver, self.metrics, self.file = Receiver(), Metrics("alerts"), directory / "alerts.yaml"
        self.running: list[Sinks] = []

    def sinks(self, **more: Any) -> Sinks:
        """The running queues of a webhook called pager."""
        hook = {"kind": "webhook", "name": "pager", "url": f"{self.receiver.url}/token", **more}
        self.file.write_bytes(orjson.dumps({"sinks": [hook]}))  # JSON is YAML
        made = Sinks(AlertsConfig.model_validate({"sinks": [hook]}).sinks, self.kafka, self.metrics)
        made.register()
        made.start()
        self.running.append(made)
        return made

    def tell(
        self, key: str, event: str, number: int = 0, names: ColumnNames = UNNAMED, **row: str | int
    ) -> None:
        """Write an event of an episode with a row; `names` are those of its columns."""
        episode = {
            "alert": "hot", "key": [key], "episode": f"{key}-{number}", "event": event, "start": 0, "end": 1,
            "alarms": 1, "row": row, "severity": None, "labels": {},
        }  # fmt: skip
        headers: Headers = dict(names.headers)
        self.producer.produce(EPISODES, orjson.dumps(episode), orjson.dumps(["hot", key]), headers=headers)
        self.producer.flush(10)

    def told(self) -> list[str]:
        """The marks of what was posted."""
        return [headers["idempotency-key"] for _, headers, _ in self.receiver.posted]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    def waiting(self) -> float | None:
        return self.sample("tamis_notifications_waiting", sink="pager")

    def unread(self) -> float | None:
        return self.sample("tamis_sink_unread_events", sink="pager")

    def dead(self) -> list[bytes | None]:
        with TopicReader(self.kafka.client_config(), [DEAD_LETTERS]) as reader:
            return [record.value for record in reader.snapshot()]

    def redeliver(self, *arguments: str) -> tuple[int, str]:
        environment: Mapping[str, str] = {"TAMIS_KAFKA_BOOTSTRAP": self.kafka.bootstrap}
        done = CliRunner().invoke(
            main, ["redeliver", "--config", str(self.file), *arguments], env=environment
        )
        return done.exit_code, done.output

    def close(self) -> None:
        for sinks in self.running:
            sinks.stop()
        self.receiver.close()


@pytest.fixture
def bench(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(empty, tmp_path)
    try:
        yield made
    finally:
        made.close()


def until(what: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


def test_what_waits_is_sent_after_a_restart_in_the_order_of_each_key(bench: Bench) -> None:
    bench.tell("early", "opened")  # before there was a sink: not told
    bench.receiver.open.clear()
    first = bench.sinks()
    for key in ("a", "b"):
        bench.tell(key, "opened")
    bench.tell("a", "closed")
    bench.tell("a", "closed")  # a crash of the service has written it twice
    # The one that was written twice is sent once.
    until(lambda: bench.waiting() == 3)
    until(lambda: (bench.sample("tamis_notifications_oldest_seconds", sink="pager") or 0) > 0)
    assert bench.sample("tamis_notifications_waiting", sink="log") == 0
    first.stop()
    assert bench.told() == []
    bench.receiver.close()
    bench.receiver = Receiver()  # the sink is known by its name, whatever its address
    second = bench.sinks()
    until(lambda: len(bench.told()) >= 3 and bench.waiting() == 0)
    second.check()
    bench.tell("a", "closed")
    bench.tell("b", "closed")
    until(lambda: "b-0:closed" in bench.told())
    told = [mark for mark in bench.told() if mark.startswith("a")]
    assert sorted(bench.told()) == ["a-0:closed", "a-0:opened", "b-0:closed", "b-0:opened"]
    assert told == ["a-0:opened", "a-0:closed"]


def test_events_between_that_the_sink_skips_do_not_wait_for_it(bench: Bench) -> None:
    bench.receiver.open.clear()
    bench.sinks()
    bench.tell("a", "opened")
    for number in range(5):
        bench.tell("a", "open", number)
        bench.tell("b", "open", number)
    bench.tell("a", "closed")
    until(lambda: bench.waiting() == 2)
    bench.receiver.open.set()
    until(lambda: bench.waiting() == 0)
    assert bench.told() == ["a-0:opened", "a-0:closed"]


def test_a_sink_that_takes_nothing_says_why_until_it_takes_one_again(bench: Bench) -> None:
    bench.receiver.failures = 10**6
    sinks = bench.sinks()
    bench.tell("a", "opened")
    until(lambda: sinks.states["pager"].waiting == 1 and sinks.states["pager"].error is not None)
    state = sinks.states["pager"]
    assert state.error == "HTTP status 503"
    assert state.oldest is not None and abs(state.oldest / 1e6 - time.time()) < 60
    assert sinks.states["log"].error is None
    bench.receiver.failures = 0
    until(lambda: sinks.states["pager"] == SinkState())


def test_sinks_continue_where_a_service_of_the_first_version_stopped(bench: Bench) -> None:
    for event in ("opened", "closed"):
        bench.tell("a", event)
    consumer = Consumer({**bench.kafka.client_config(), "group.id": ALERTS_GROUP})
    at = [TopicPartition(EPISODES, number) for number in range(PARTITIONS)]
    (mine,) = [one for one in at if consumer.get_watermark_offsets(one)[1]]  # that of the key
    mine.offset = 1  # it has delivered the first event
    consumer.commit(offsets=[mine], asynchronous=False)
    consumer.close()
    first = bench.sinks()
    until(lambda: bench.told() == ["a-0:closed"])
    first.stop()
    # A sink that is new later gets what comes from then on.
    bench.sinks(name="other")
    bench.tell("a", "opened", 1)
    until(lambda: len(bench.told()) > 1)
    assert bench.told() == ["a-0:closed", "a-1:opened"]


def test_keys_that_fail_hold_up_no_other_key(bench: Bench) -> None:
    bench.receiver.refused = failing = {f"bad{number}" for number in range(6)}
    sinks = bench.sinks(parallel=2)
    for key in sorted(failing):
        bench.tell(key, "opened")
    until(lambda: bench.waiting() == 6)
    for number in range(20):
        bench.tell(f"good{number}", "opened")
    # Attempts of a key that fails are up to 30 s apart.
    until(lambda: len(bench.told()) == 20, 15)
    assert sorted(bench.told()) == sorted(f"good{number}-0:opened" for number in range(20))
    bench.receiver.refused = set()
    until(lambda: len(bench.told()) == 26, 60)
    sinks.check()


def test_what_is_given_up_is_a_dead_letter_that_can_be_sent_again(bench: Bench) -> None:
    bench.receiver.failures = 1_000
    bench.sinks(attempts=2)
    for event in ("opened", "closed"):
        bench.tell("a", event)
    until(lambda: bench.sample("tamis_notifications_total", sink="pager", outcome="given_up") == 2)
    assert [orjson.loads(value or b"")["event"] for value in bench.dead()] == ["opened", "closed"]
    bench.tell("b", "opened")  # goes to the log all the same
    until(lambda: bench.sample("tamis_notifications_total", sink="log", outcome="delivered") == 3)
    until(lambda: len(bench.dead()) == 3)

    code, said = bench.redeliver()
    assert code == 1 and "sink 'pager': HTTP status 503" in said and "/token" not in said
    bench.receiver.failures = 0
    assert bench.redeliver("--dry-run")[1].endswith("pager: 3 to send again\n")
    assert bench.told() == []
    code, said = bench.redeliver("pager")
    assert code == 0 and said.endswith("pager: 3 sent again\n")
    assert bench.told() == ["a-0:opened", "a-0:closed", "b-0:opened"]
    assert bench.redeliver() == (0, "pager: 0 sent again\n")
    assert bench.redeliver("other")[0] == 2


def test_an_opening_is_not_sent_again_after_its_close(bench: Bench) -> None:
    """It would open an incident that nobody closes."""
    bench.receiver.failures = 2
    bench.sinks(attempts=1)
    for key in ("a", "b"):
        bench.tell(key, "opened")
    until(lambda: len(bench.dead()) == 2)
    bench.tell("a", "closed")  # the sink accepts it
    until(lambda: bench.told() == ["a-0:closed"])
    code, said = bench.redeliver("--dry-run")
    assert code == 0 and "hot ['a'] opened: left out, since the episode has closed\n" in said
    assert said.endswith("pager: 1 to send again, 1 left out: their episodes have closed\n")
    assert bench.redeliver()[0] == 0
    assert bench.told() == ["a-0:closed", "b-0:opened"]
    assert bench.redeliver() == (0, "pager: 0 sent again\n")


def test_large_events_that_wait_are_in_kafka_and_not_in_memory(bench: Bench) -> None:
    bench.receiver.open.clear()
    queue = bench.sinks()._queues[-1]
    keys = [f"k{number}" for number in range(40)]
    for key in keys:
        bench.tell(key, "opened", note="x" * 500_000)
    until(lambda: queue._bytes >= MAX_BYTES and bench.waiting() == len(queue._tasks))
    until(lambda: (bench.waiting() or 0) + (bench.unread() or 0) == len(keys))
    assert bench.unread(), "some are in Kafka only"
    # What the client has fetched of a partition, 4 MB, may come at once.
    assert queue._bytes < MAX_BYTES + PARTITIONS * 4 * 2**20 < len(keys) * 500_000
    bench.receiver.open.set()
    until(lambda: len(set(bench.told())) == len(keys), 60)
    until(lambda: bench.waiting() == bench.unread() == 0 and queue._bytes == 0)


def test_a_stop_ends_all_sinks_in_time_and_leaves_no_thread(bench: Bench) -> None:
    bench.receiver.open.clear()
    sinks = bench.sinks()
    bench.tell("a", "opened")
    until(lambda: bench.waiting() == 1)
    began = time.monotonic()
    sinks.stop()
    assert time.monotonic() - began < 8
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sink-")]


def test_a_topic_of_the_operator_gets_events_in_order_and_one_that_is_missing_makes_dead_letters(
    bench: Bench,
) -> None:
    # A client may report a topic as missing for a while after it was created.
    kafka = {"kind": "kafka", "topic": "plant.alarms", "timeout": 3, "attempts": 4}
    made = Sinks(AlertsConfig.model_validate({"sinks": [kafka]}).sinks, bench.kafka, bench.metrics)
    made.register()
    made.start()
    bench.running.append(made)
    bench.tell("early", "opened")
    until(lambda: len(bench.dead()) == 1, 60)
    admin = AdminClient(bench.kafka.client_config())
    for done in admin.create_topics([NewTopic("plant.alarms", PARTITIONS, 1)]).values():
        done.result(30)
    for number in range(5):
        bench.tell("a", "opened", number)
        bench.tell("a", "closed", number)
    until(lambda: bench.sample("tamis_notifications_total", sink="kafka", outcome="delivered") == 10)
    with TopicReader(bench.kafka.client_config(), ["plant.alarms"]) as reader:
        records = list(reader.snapshot())
    told = [orjson.loads(record.value or b"") for record in records]
    expected = [(f"a-{number}", event) for number in range(5) for event in ("opened", "closed")]
    assert [(event["episode"], event["event"]) for event in told] == expected
    assert {record.key for record in records} == {b'["hot","a"]'}
    bench.file.write_bytes(orjson.dumps({"sinks": [kafka]}))
    assert bench.redeliver() == (0, "kafka: hot ['early'] opened\nkafka: 1 sent again\n")

"""Silences with a real broker: held openings, restarts, the end of a silence, and a missing topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.alerts.test_sinks import Bench, until

from tamis.local.broker import EmbeddedKafka
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.silences import Held, Silence, decode, encode
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import SILENCES
from tamis_alerts import silence_view
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.silence_view import SilenceView
from tamis_alerts.sinks.all_sinks import Sinks

HOUR = 3600 * 1_000_000


class Silenced(Bench):
    """The bench with the topic of silences, which a producer writes in place of the registry."""

    views: list[SilenceView]

    def create(self) -> None:
        topic = NewTopic(SILENCES, 1, 1, config={"cleanup.policy": "compact"})
        admin = AdminClient(self.kafka.client_config())
        admin.create_topics([topic])[SILENCES].result(30)

    def silence(self, name: str, seconds: float = 3600, **conditions: Any) -> None:
        now = time.time_ns() // 1000
        made = Silence(id=name, start=now, until=now + int(seconds * 1e6), **conditions)
        self.write(made.record_key, encode(made))

    def write(self, key: bytes, value: bytes | None) -> None:
        producer = Producer(self.kafka.client_config())
        producer.produce(SILENCES, value, key, 0)
        assert producer.flush(10) == 0

    def held(self) -> dict[str, Held]:
        """The held openings in Kafka, by episode."""
        found: dict[bytes, bytes] = {}
        with TopicReader(self.kafka.client_config(), [SILENCES]) as reader:
            for record in reader.snapshot():
                assert record.key is not None
                found.pop(record.key, None)
                if record.value is not None:
                    found[record.key] = record.value
        records = [decode(key, value) for key, value in found.items()]
        return {one.episode: one for one in records if isinstance(one, Held)}

    def start(self, **more: Any) -> Sinks:
        """The running queue of a webhook called pager."""
        hook = {"kind": "webhook", "name": "pager", "url": f"{self.receiver.url}/token", **more}
        self.file.write_bytes(orjson.dumps({"sinks": [hook]}))  # JSON is YAML
        view = SilenceView(self.kafka.client_config())
        view.start()
        self.views.append(view)
        sinks = AlertsConfig.model_validate({"sinks": [hook]}).sinks
        made = Sinks(sinks, self.kafka, self.metrics, silences=view)
        made.register()
        made.start()
        self.running.append(made)
        return made

    def silenced(self) -> float:
        return self.sample("tamis_notifications_total", sink="pager", outcome="silenced") or 0.0

    def close(self) -> None:
        super().close()
        for view in self.views:
            view.check()
            view.stop()


@pytest.fixture
def bench(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[Silenced]:
    made = Silenced(empty, tmp_path)
    made.views = []
    try:
        yield made
    finally:
        made.close()


def test_what_a_silence_held_is_told_at_its_end_and_what_closed_meanwhile_is_not(bench: Silenced) -> None:
    bench.create()
    bench.silence("repair", alerts=("hot",), keys=(("a",), ("b",)))
    first = bench.start()
    for key in "abc":
        bench.tell(key, "opened")
    until(lambda: bench.told() == ["c-0:opened"] and bench.silenced() == 2)
    until(lambda: bench.sample("tamis_notifications_held", sink="pager") == 2)
    assert bench.held().keys() == {"a-0", "b-0"}
    # Another process takes over: what was held is known to it.
    first.stop()
    bench.start()
    bench.tell("b", "closed")
    bench.tell("c", "closed")
    until(lambda: bench.told() == ["c-0:opened", "c-0:closed"] and bench.held().keys() == {"a-0"})
    assert bench.silenced() == 3
    # The silence is removed.
    bench.write(b"silence/repair", None)
    until(lambda: bench.told()[2:] == ["a-0:opened"] and not bench.held())
    bench.tell("a", "closed")
    until(lambda: bench.told()[3:] == ["a-0:closed"])
    assert bench.waiting() is not None


def test_the_names_of_the_key_come_to_sinks_also_if_an_opening_was_held_or_given_up(bench: Silenced) -> None:
    """Alertmanager identifies an alert by them."""
    bench.create()
    bench.silence("repair", alerts=("hot",), keys=(("a",),))
    bench.receiver.failures = 1
    bench.start(body="[{{ columns.station|tojson }}]", attempts=1)
    for key in "ab":
        bench.tell(key, "opened", names=ColumnNames(("station",)))
    until(lambda: bench.held().keys() == {"a-0"} and len(bench.dead()) == 1)
    bench.write(b"silence/repair", None)
    until(lambda: [body for _, _, body in bench.receiver.posted] == [["a"]])
    assert bench.redeliver()[0] == 0
    assert [body for _, _, body in bench.receiver.posted] == [["a"], ["b"]]


def test_times_are_readable_also_if_an_opening_was_held_or_given_up(bench: Silenced) -> None:
    bench.create()
    bench.silence("repair", alerts=("hot",), keys=(("a",),))
    bench.receiver.failures = 1
    bench.start(kind="slack", attempts=1)
    for key in "ab":
        bench.tell(key, "opened", names=ColumnNames(("station",), row_times=("ts",)), ts=1_500_000)
    until(lambda: bench.held().keys() == {"a-0"} and len(bench.dead()) == 1)
    bench.write(b"silence/repair", None)
    until(lambda: len(bench.receiver.posted) == 1)
    assert bench.redeliver()[0] == 0
    texts = [body["text"].splitlines() for _, _, body in bench.receiver.posted]
    assert [text[0] for text in texts] == ["hot opened: a", "hot opened: b"]
    assert {text[-1] for text in texts} == {"ts: 1970-01-01T00:00:01.500000+00:00"}


def test_a_silence_that_ends_by_itself_is_followed_by_what_it_held(bench: Silenced) -> None:
    bench.create()
    bench.start()
    bench.silence("short", 4, severities=("",))
    until(lambda: len(bench.views[0].silences) == 1)
    began = time.time()
    bench.tell("a", "opened")
    bench.tell("a", "open")
    until(lambda: bench.held().keys() == {"a-0"})
    assert bench.told() == []
    until(lambda: bench.told() == ["a-0:opened"])
    assert time.time() - began > 2
    until(lambda: not bench.held())


def test_a_crash_after_the_commit_of_a_close_leaves_nothing_to_be_told(bench: Silenced) -> None:
    bench.create()
    bench.silence("repair", alerts=("hot",))
    first = bench.start()
    bench.tell("a", "opened")
    until(lambda: bench.held().keys() == {"a-0"})
    (held,) = bench.held().values()
    bench.tell("a", "closed")
    until(lambda: not bench.held())
    first.stop()
    # The record as it was before the last step, and the silence is over.
    noted = Held(
        sink="pager", partition=held.partition, offset=held.offset, event=held.event, closed=held.offset + 1
    )
    bench.write(noted.record_key, encode(noted))
    bench.write(b"silence/repair", None)
    bench.start()
    bench.tell("b", "opened")
    until(lambda: bench.told() == ["b-0:opened"] and not bench.held())


def test_a_sink_that_ignores_silences_sends_all_and_what_it_held_before(bench: Silenced) -> None:
    bench.create()
    bench.silence("repair", alerts=("hot",))
    first = bench.start()
    bench.tell("a", "opened")
    until(lambda: bench.held().keys() == {"a-0"})
    first.stop()
    bench.start(silences="ignore")
    bench.tell("b", "opened")
    until(lambda: sorted(bench.told()) == ["a-0:opened", "b-0:opened"] and not bench.held())


def test_openings_that_a_silence_covers_do_not_wait_for_a_sink_that_is_down(bench: Silenced) -> None:
    bench.create()
    bench.receiver.failures = 10**6
    queue = bench.start(parallel=1)._queues[-1]
    # Eight notifications are begun for each slot, so those behind them aren't held yet.
    begun = [f"begun{number}" for number in range(8)]
    for key in begun:
        bench.tell(key, "opened")
    until(lambda: [event.decision for event in list(queue._tasks.values())] == ["tell"] * len(begun))
    bench.silence("repair", alerts=("hot",))
    until(lambda: len(bench.views[0].silences) == 1)
    for key in ("x", "y"):
        bench.tell(key, "opened")
    bench.tell("x", "closed")
    bench.tell(begun[0], "closed")
    until(lambda: bench.waiting() == len(begun) + 1)
    bench.write(b"silence/repair", None)
    until(lambda: bench.waiting() == len(begun) + 1 + 3)
    bench.silence("repair", alerts=("hot",))
    until(lambda: bench.waiting() == len(begun) + 1)
    bench.receiver.failures = 0
    until(lambda: bench.waiting() == 0 and bench.held().keys() == {"y-0"}, 60)
    until(lambda: bench.sample("tamis_notifications_held", sink="pager") == 1)
    assert len(bench.told()) == len(begun) + 1
    # The sink is down again when the silence ends: what was held waits now.
    bench.receiver.open.clear()
    bench.write(b"silence/repair", None)
    until(lambda: bench.waiting() == 1 and bench.sample("tamis_notifications_held", sink="pager") == 0)
    bench.receiver.open.set()
    until(lambda: bench.waiting() == 0 and not bench.held())


def test_a_fleet_without_the_topic_goes_on_and_obeys_silences_once_there_is_one(
    bench: Silenced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alerts service is upgraded before the registry, which makes the topic."""
    monkeypatch.setattr(silence_view, "AGAIN_SECONDS", 0.2)
    bench.start()
    bench.tell("a", "opened")
    until(lambda: bench.told() == ["a-0:opened"])
    bench.create()
    bench.silence("repair", alerts=("hot",))
    until(lambda: len(bench.views[0].silences) == 1)
    bench.tell("a", "closed")
    bench.tell("b", "opened")
    until(lambda: bench.told() == ["a-0:opened", "a-0:closed"] and bench.held().keys() == {"b-0"})

"""A topic reader: snapshots, reading on, slow callers, and the newest plan without decoding all plans."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.edge.slow_link import SlowLink

from tamis.errors import InputError, UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_settings import Listener
from tamis.local.service_process import free_ports
from tamis.messaging.plans import TAIL, newest_plan
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import FRONTIERS, PLANS
from tamis.plan.document import PLAN
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.plan.wire import WireType
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis_alerts.fleet_view import FleetView
from tamis_edge.plan_reader import PlanFile, PlanReader
from tamis_joiner.monitoring.kafka_monitor import KafkaMonitor

PARTITIONS = 2
VERSIONS = 40


class Topics:
    """The topics of one test."""

    def __init__(self, bootstrap: str) -> None:
        self.settings = KafkaSettings(bootstrap=bootstrap)
        self.config = self.settings.client_config()
        self._admin, self._producer = AdminClient(self.config), Producer(self.config)

    def create(self, name: str, partitions: int = PARTITIONS) -> None:
        self._admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)
        _until(lambda: name not in self._admin.list_topics(timeout=10).topics)

    def write(self, name: str, values: Mapping[int, list[bytes]], timestamp: int = 0) -> None:
        for partition, some in values.items():
            for value in some:
                self._producer.produce(name, value, b"key", partition, timestamp=timestamp)
        assert self._producer.flush(30) == 0


@pytest.fixture
def topics(empty: EmbeddedKafka) -> Topics:
    return Topics(empty.bootstrap)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many plans were decoded."""
    counted: Counter[str] = Counter()
    real: Callable[..., Any] = WireType.decode

    def decode(kind: WireType[Any], data: bytes, place: str) -> Any:
        counted["plans"] += kind is PLAN
        return real(kind, data, place)

    monkeypatch.setattr(WireType, "decode", decode)
    return counted


@pytest.fixture
def week(topics: Topics) -> Topics:
    """Many versions of the plan in every partition, as a week leaves them; the newest not in all of them."""
    topics.create(PLANS)
    documents = [encode_plan(Plan(version, PARTITIONS)) for version in range(1, VERSIONS + 1)]
    topics.write(PLANS, {0: documents, 1: documents[:-1]})
    return topics


def test_a_slow_caller_gets_every_record(topics: Topics) -> None:
    """The limit is for the broker's silence, not for what the caller does between two records."""
    topics.create("slow", 1)
    values = [b"%d" % number for number in range(3000)]  # more than one poll takes
    topics.write("slow", {0: values})
    found: list[bytes | None] = []
    with TopicReader(topics.config, ["slow"]) as reader:
        for record in reader.snapshot(1.0):
            if not found:
                time.sleep(1.5)
            found.append(record.value)
    assert found == values


def test_a_silent_broker_ends_a_snapshot(
    topics: Topics, empty: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.create("silent", 1)
    topics.write("silent", {0: [b"1"]})
    assert empty._process is not None
    process, real = empty._process, TopicReader._partitions

    def partitions(reader: TopicReader) -> list[tuple[str, int]]:
        found = real(reader)
        process.send_signal(signal.SIGSTOP)  # known where to read, and nothing more
        return found

    monkeypatch.setattr(TopicReader, "_partitions", partitions)
    try:
        with TopicReader(topics.config, ["silent"]) as reader:
            with pytest.raises(UnavailableError, match="sent nothing for 1 s before the end was reached"):
                list(reader.snapshot(1.0))
            process.send_signal(signal.SIGCONT)
    finally:
        process.send_signal(signal.SIGCONT)


def test_an_edge_decodes_the_newest_plan_alone(week: Topics, decoded: Counter[str], tmp_path: Path) -> None:
    woken: list[int] = []
    plans = PlanReader(week.settings, PlanFile(tmp_path), dict, lambda: woken.append(1))
    plans.start()
    try:
        _until(lambda: plans.fresh)
        assert (plans.plan and plans.plan.version, decoded["plans"]) == (VERSIONS, 1)
        document = encode_plan(Plan(VERSIONS + 1, PARTITIONS))
        week.write(PLANS, {0: [document], 1: [document]})
        _until(lambda: plans.plan is not None and plans.plan.version == VERSIONS + 1)
    finally:
        plans.stop()
    assert decoded["plans"] == 2


def test_an_edge_finds_the_plan_of_a_topic_that_was_created_again_while_it_was_cut_off(
    tmp_path: Path,
) -> None:
    """The edge is cut off meanwhile, and its position is the end of the new topic, too."""

    def write(topics: Topics, versions: range) -> None:
        topics.create(PLANS)
        documents = [encode_plan(Plan(version, PARTITIONS)) for version in versions]
        topics.write(PLANS, {partition: documents for partition in range(PARTITIONS)})

    behind, front = free_ports(2)
    listeners = [Listener("FAR", behind, advertised=front)]
    with EmbeddedKafka(tmp_path / "kafka", listeners=listeners) as broker:
        topics, far = Topics(broker.bootstrap), KafkaSettings(bootstrap=f"127.0.0.1:{front}")
        write(topics, range(1, 4))
        plans = PlanReader(far, PlanFile(tmp_path), dict, lambda: None)
        plans.start()
        try:
            with SlowLink(front, behind, 1e9):
                _until(lambda: plans.plan is not None and plans.plan.version == 3)
            topics.delete(PLANS)
            write(Topics(broker.bootstrap), range(4, 7))
            with SlowLink(front, behind, 1e9):
                _until(lambda: plans.plan is not None and plans.plan.version == 6)
        finally:
            plans.stop()


def test_a_joiner_shows_the_newest_plan_and_decodes_no_other(week: Topics, decoded: Counter[str]) -> None:
    week.create(FRONTIERS, 1)
    metrics, health = Metrics("joiner"), Health()
    monitor = KafkaMonitor(week.settings, metrics, health, partitions=PARTITIONS, read_from=dict)
    monitor.follow(_AtOnce())
    assert (monitor.state.plan_version, decoded["plans"]) == (VERSIONS, 1)


def test_the_alerts_service_decodes_the_newest_plan_alone(week: Topics, decoded: Counter[str]) -> None:
    week.create(FRONTIERS, 1)
    view = FleetView(week.config, "alerts")
    view.start()
    view.stop()
    assert (view._version, decoded["plans"]) == (VERSIONS, 1)


def test_plans_before_many_bad_records_are_found(week: Topics, decoded: Counter[str]) -> None:
    bad = [b"not a plan"] * (2 * TAIL)
    week.write(PLANS, {0: bad, 1: bad})
    told: list[Record] = []

    def unreadable(record: Record, _: InputError) -> None:
        told.append(record)

    with TopicReader(week.config, [PLANS]) as reader:
        found = newest_plan(reader, unreadable)
        assert found is not None and found.plan.version == VERSIONS
        assert decoded["plans"] == 1
        assert {record.value for record in told} == {b"not a plan"}


def test_following_begins_at_the_end_or_at_a_time(topics: Topics) -> None:
    topics.create("timed")
    for second in (1, 2, 3):
        topics.write("timed", {0: [b"a%d" % second], 1: [b"b%d" % second]}, timestamp=second * 1000)
    with TopicReader(topics.config, ["timed"]) as reader:
        reader.follow(since=2000)
        assert sorted(_some(reader, 4)) == [b"a2", b"a3", b"b2", b"b3"]
        reader.follow(since=4000)
        topics.write("timed", {1: [b"b5"]}, timestamp=5000)
        assert list(_some(reader, 1)) == [b"b5"]
        reader.follow()
        topics.write("timed", {0: [b"a6"]}, timestamp=6000)
        assert list(_some(reader, 1)) == [b"a6"]


def test_a_broker_that_knows_no_leader_yet_is_asked_again(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after its start, for a moment."""
    topics.create("young", 1)
    topics.write("young", {0: [b"1", b"2", b"3"]})
    with TopicReader(topics.config, ["young"]) as reader:
        refusals = iter([KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)] * 3)
        monkeypatch.setattr(reader, "_consumer", _Refusing(reader._consumer, refusals))
        assert [record.value for record in reader.snapshot(last={"young": 2})] == [b"2", b"3"]


class _Refusing:
    """A consumer whose broker refuses to tell offsets at first."""

    def __init__(self, consumer: Consumer, refusals: Iterator[KafkaError]) -> None:
        self._consumer, self._refusals = consumer, refusals

    def get_watermark_offsets(self, *arguments: Any, **more: Any) -> Any:
        for error in self._refusals:
            raise KafkaException(error)
        return self._consumer.get_watermark_offsets(*arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


class _AtOnce(threading.Event):
    """Set as soon as it was asked once."""

    def is_set(self) -> bool:
        before = super().is_set()
        self.set()
        return before


def _some(reader: TopicReader, count: int) -> Iterator[bytes]:
    found: list[bytes] = []

    def enough() -> bool:
        found.extend(record.value or b"" for record in reader.poll(0.2))
        return len(found) >= count

    _until(enough)
    yield from found


def _until(done: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""Each right is needed: without it an error names right, resource and principal, and with it all goes on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from tests.integration.edge.test_plan_parts import of
from tests.integration.edges import wait_for
from tests.integration.security.conftest import SecureKafka

from tamis.errors import UnavailableError
from tamis.local.fleet_logins import grant, revoke
from tamis.messaging.authorization import RightsCheck, missing_rights
from tamis.messaging.probe import wait_for_topics
from tamis.messaging.rights import RIGHTS, Right
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, PLANS
from tamis.plan.json_form import encode_plan
from tamis.settings import KafkaSettings
from tamis.telemetry import Health
from tamis.telemetry.metrics import Metrics
from tamis_alerts.state_store import CHANGELOG, StateStore
from tamis_edge.core.records import Record
from tamis_edge.plan_reader import PlanFile, PlanReader
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.kafka.topic import KafkaTopic
from tamis_edge.storage.spool import Spool
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.kafka.store import Store
from tamis_registry.kafka.topic_admin import TopicAdmin
from tamis_registry.plans import Origin

STREAM = "tamis.stream.air.1"
RAW = "raw.air"
ASKED = [r for r in RIGHTS if r.operation != "Create" and r.resource != "transactional id" and not r.only_for]
ASKED = [r for r in ASKED if (r.resource, r.operation) != ("group", "Delete")]
# Kafka lets who may read or write a topic describe it; the registry may do so with all topics here.
ASKED = [r for r in ASKED if (r.principal, r.operation, r.name) != ("registry", "Describe", "tamis.")]


def settings(secure: SecureKafka, principal: str) -> KafkaSettings:
    return secure.settings("SCRAM-SHA-512", principal)


@pytest.fixture(scope="module", autouse=True)
def fleet(secure: SecureKafka) -> None:
    """The fleet's topics, created by the registry and the alerts service with no more than their rights."""
    grant(secure.broker)
    source = Right("edge", "topic", RAW, "Read", "a Kafka source")
    grant(secure.broker, [source])
    wait_for(
        "the rights are in force", lambda: missing_rights(settings(secure, "registry"), "registry") is None
    )
    topics = TopicAdmin(settings(secure, "registry").client_config())
    topics.ensure_base(2)
    topics.ensure_streams([STREAM], 2)
    topics.ensure_parts(["a"])
    StateStore(settings(secure, "alerts").client_config()).create(2)
    secure.create_topic(RAW)


@contextmanager
def without(secure: SecureKafka, right: Right) -> Iterator[None]:
    """The right is taken away meanwhile."""
    revoke(secure.broker, [right])
    try:
        yield
    finally:
        grant(secure.broker, [right])


def one(principal: str, operation: str, name: str) -> Right:
    (found,) = (r for r in RIGHTS if (r.principal, r.operation, r.name) == (principal, operation, name))
    return found


@pytest.mark.parametrize("right", ASKED, ids=lambda r: f"{r.principal}-{r.what.replace(' ', '-')}")
def test_what_is_missing_is_named_until_it_is_granted(secure: SecureKafka, right: Right) -> None:
    kafka = settings(secure, right.principal)
    client = AdminClient(kafka.client_config())

    def missing() -> str:
        check = RightsCheck(client, kafka, right.principal)
        return str(check.missing({*client.list_topics(timeout=10).topics, STREAM}) or "")

    name = right.name if not right.prefixed else STREAM if right.name.startswith("tamis.stream.") else ""
    with without(secure, right):
        said = wait_for("the error", missing, 20)
    assert f"not authorized: User:{right.principal}: no " in said
    assert f"no {right.operation} on {right.resource} {name or 'tamis'}" in said
    wait_for("the end of the error", lambda: not missing(), 20)


def test_the_registry_creates_topics(secure: SecureKafka) -> None:
    topics = TopicAdmin(settings(secure, "registry").client_config())
    with without(secure, one("registry", "Create", "tamis.")):
        time.sleep(1)  # a topic that it creates too early would stay
        with pytest.raises(UnavailableError, match=r"User:registry: no Create on topic tamis.stream.try.1;"):
            topics.ensure_streams(["tamis.stream.try.1"], 1)
    wait_for("creation", lambda: _succeeds(lambda: topics.ensure_streams(["tamis.stream.try.1"], 1)))


def test_the_alerts_service_creates_its_changelog(secure: SecureKafka) -> None:
    secure.admin.delete_topics([CHANGELOG])[CHANGELOG].result(10)
    store = StateStore(settings(secure, "alerts").client_config())
    with without(secure, one("alerts", "Create", CHANGELOG)):
        time.sleep(1)  # a topic that it creates too early would stay
        with pytest.raises(UnavailableError, match=rf"User:alerts: no Create on topic {CHANGELOG};"):
            store.create(2)
    wait_for("creation", lambda: _succeeds(lambda: store.create(2)))


def test_the_registry_writes_alone(secure: SecureKafka) -> None:
    right = one("registry", "Write", "tamis-registry")

    def error() -> str:
        store = Store(settings(secure, "registry"), "me")
        try:
            store.take_over(False)
        except UnavailableError as error:
            return str(error)
        finally:
            store.close()
        return ""

    with without(secure, right):
        said = wait_for("the error", error, 20)
    assert "not authorized: User:registry: no Write on transactional id tamis-registry;" in said
    wait_for("it takes over", lambda: not error(), 20)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (one("edge", "Read", "tamis-edge."), f"User:edge: no Read on group tamis-edge.air.{RAW};"),
        (Right("edge", "topic", RAW, "Read", ""), f"User:edge: no Read on topic {RAW};"),
    ],
)
def test_a_kafka_source(secure: SecureKafka, right: Right, said: str) -> None:
    source = KafkaTopic(
        KafkaSource(kind="kafka", name="s", topic=RAW, stream="air"),
        settings(secure, "edge"),
        lambda _: None,
        lambda _: None,
    )

    def trouble() -> str:
        source.shards()
        return source.troubles()["s"] or ""

    with without(secure, right):
        time.sleep(0.5)
        source.start()
        assert said in wait_for("the error", trouble, 20)
    wait_for("its partitions", source.shards, 60)
    source.close()


def test_an_edge_reads_whole_plans_if_there_is_no_right_on_parts(secure: SecureKafka, tmp_path: Path) -> None:
    store = Store(settings(secure, "registry"), "me")
    plans = PlanReader(
        settings(secure, "edge"), PlanFile(tmp_path, frozenset({"a"})), dict, lambda: None, "edge"
    )
    try:
        store.take_over(False)
        with without(secure, one("edge", "Read", "tamis.plan-parts.")):
            store.write_plan(encode_plan(of(1)), Origin(0), 2, ())
            plans.start()
            wait_for("the plan", lambda: plans.plan is not None and plans.plan.version == 1)
        with without(secure, one("registry", "Write", "tamis.plan-parts.")):
            time.sleep(1)
            store.write_plan(encode_plan(of(2)), Origin(0), 2, ())
            wait_for("the next plan", lambda: plans.plan is not None and plans.plan.version == 2)
        wait_for("rights", lambda: _succeeds(lambda: store.write_plan(encode_plan(of(3)), Origin(0), 2, ())))
    finally:
        plans.stop()
        store.close()


def test_an_edge_loses_nothing_while_it_may_not_write(secure: SecureKafka, tmp_path: Path) -> None:
    class Shard:
        shard = "air:edge/source"

        def __init__(self) -> None:
            self.out: deque[Record] = deque()
            self.safe_ones: set[int] = set()

        def safe(self, *tokens: int) -> None:
            self.safe_ones.update(tokens)

        def carries_tuple(self, token: int) -> bool:
            return True

        def place(self, token: int) -> int:
            return token

        def retract(self, token: int) -> None:
            raise AssertionError

    kafka, shard, sent = settings(secure, "edge"), Shard(), 0
    spool = Spool(tmp_path / "spool.db", 10**9)
    files = DeadLetterFiles(tmp_path / "letters", 10**9)
    publisher = Publisher(kafka, "e", spool, files, Metrics("edge"))

    def turn(new: int) -> bool:
        nonlocal sent
        shard.out.extend(
            Record(i, STREAM, i % 2, b"k", b"%d" % i, int(time.time() * 1000))
            for i in range(sent, sent + new)
        )
        sent += new
        publisher.send(shard, movable=True)
        publisher.poll()
        return publisher.denied is not None

    wait_for("a delivery", lambda: turn(5) or shard.safe_ones)
    with without(secure, one("edge", "Write", "tamis.stream.")):
        wait_for("the error", lambda: turn(5), 30)
        denied = str(publisher.denied)
        assert f"not authorized: User:edge: no Write on topic {STREAM};" in denied
        until = time.monotonic() + 3
        while time.monotonic() < until:
            turn(5)
            time.sleep(0.05)
        assert publisher.fault is None
    wait_for("all are safe", lambda: not turn(0) and len(shard.safe_ones) == sent, 30)
    publisher.close()
    with TopicReader(secure.broker.admin_config(), [STREAM]) as reader:
        records = list(reader.snapshot())
    found = [[int(r.value or b"0") for r in records if r.partition == number] for number in (0, 1)]
    for partition, values in enumerate(found):
        assert sorted(set(values)) == list(range(partition, sent, 2))
        firsts = list(dict.fromkeys(values))
        assert firsts == sorted(firsts), "in order; after an error records may come twice"


class Never(AdminClient):
    """It doesn't describe groups: if the broker goes away meanwhile, librdkafka may end the process (issue
    4605).
    """

    def describe_consumer_groups(self, group_ids: list[str], **options: Any) -> Any:  # type: ignore[override]
        raise AssertionError(group_ids)


def test_rights_on_groups_are_asked_by_a_consumer(
    secure: SecureKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = settings(secure, "alerts")
    check = RightsCheck(Never(kafka.client_config()), kafka, "alerts")
    right = one("alerts", "Read", "tamis-alerts")
    describe = replace(right, operation="Describe")
    with without(secure, right):
        said = wait_for("the right is gone", lambda: check.missing([ALARMS]))
        assert "no Read on group tamis-alerts" in str(said)
        grant(secure.broker, [describe])
        time.sleep(1)  # until it is in force
        assert "no Read on group tamis-alerts" in str(check.missing([ALARMS]))
    revoke(secure.broker, [describe])
    wait_for("the rights", lambda: not check.missing([ALARMS]))
    with without(secure, right):  # it looks again only after some time
        time.sleep(1)
        assert check.missing([ALARMS]) is None
        monkeypatch.setattr(check, "_groups_due", 0.0)
        said = wait_for("it is noticed", lambda: check.missing([ALARMS]), 20)
        assert "no Read on group tamis-alerts" in str(said)


def test_a_question_about_groups_changes_nothing(secure: SecureKafka) -> None:
    """It commits into a topic that doesn't exist."""
    kafka = settings(secure, "alerts")
    assert missing_rights(kafka, "alerts") is None
    offsets = secure.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("tamis-alerts")])
    assert not [one for one in offsets["tamis-alerts"].result(20).topic_partitions or () if one.offset >= 0]
    assert "tamis/none" not in secure.admin.list_topics(timeout=10).topics


def test_a_service_waits_for_its_rights_and_says_so(secure: SecureKafka) -> None:
    said: list[str] = []
    found: list[Any] = []
    seen = threading.Event()

    class Told(Health):
        def not_ready(self, reason: str) -> None:
            said.append(reason)
            seen.set()

    kafka, stopping = settings(secure, "alerts"), threading.Event()
    with without(secure, one("alerts", "Read", ALARMS)):
        wait_for("the rights", lambda: missing_rights(kafka, "alerts"))
        waiting = threading.Thread(
            target=lambda: found.append(wait_for_topics(kafka, [ALARMS, PLANS], Told(), stopping, "alerts"))
        )
        waiting.start()
        assert seen.wait(20)
        assert f"User:alerts: no Read on topic {ALARMS};" in said[0]
        assert not found
    waiting.join(20)
    stopping.set()
    assert found == [2]


def _succeeds(step: Any) -> bool:
    try:
        step()
    except UnavailableError:
        return False
    return True


def test_newest_records_that_may_not_be_read_are_no_empty_answer(secure: SecureKafka) -> None:
    """An operator who sees no alarms believes that there are none."""
    right = one("registry", "Read", ALARMS)
    kafka = settings(secure, "registry")
    written = Producer(settings(secure, "joiner").client_config())
    written.produce(ALARMS, b"{}")
    assert written.flush(20) == 0

    def read() -> str:
        try:
            return f"{NewestReader(kafka).read([ALARMS], lambda message: message.value(), 1).read} read"
        except UnavailableError as error:
            return str(error)

    wait_for("the record", lambda: read() == "1 read", 20)
    with without(secure, right):
        wait_for("the refusal", lambda: "not authorized: User:registry: " in read(), 20)

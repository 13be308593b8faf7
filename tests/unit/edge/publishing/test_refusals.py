"""The way to Kafka, before a broker that refuses some records for good."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.fixtures.small_disk import fill, small_disk

from tamis.messaging.topics import DEAD_LETTERS, MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.records import Record
from tamis_edge.publishing import publisher
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.storage.disk import Reserve
from tamis_edge.storage.spool import Spool

TOPIC = "tamis.stream.air.1"
Report = Callable[[KafkaError | None, Any], None]


@dataclass
class Broker:
    """Takes what is at most `limits` bytes by topic and isn't `bad`."""

    limits: dict[str, int] = field(default_factory=dict)
    taken: list[tuple[str, int, bytes]] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)

    def judge(self, topic: str, value: bytes) -> KafkaError | None:
        if len(value) > self.limits.get(topic, MAX_RECORD_BYTES):
            return KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
        return KafkaError(KafkaError.INVALID_RECORD) if value.startswith(b"bad") else None


class Producer:
    """confluent_kafka's, as the publisher uses it; a refused record ends one that must leave no gap."""

    def __init__(self, broker: Broker, config: dict[str, Any]) -> None:
        self.broker, self.gapless = broker, "enable.gapless.guarantee" in config
        self.queue: deque[tuple[str, bytes, int, Report | None]] = deque()
        self.reports: list[tuple[Report, KafkaError | None]] = []
        self.dead = False
        broker.producers.append(self)

    def produce(  # noqa: PLR0917 - as confluent_kafka's
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int,
        callback: Any = ...,
        on_delivery: Report | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        if self.dead:
            raise KafkaException(KafkaError(KafkaError._FATAL))
        # Two names of one thing: the first counts where it is given, even None.
        self.queue.append((topic, value, partition, on_delivery if callback is ... else callback))

    def work(self, count: int) -> None:
        """The broker looks at the next records."""
        while count and self.queue and not self.dead:
            count -= 1
            topic, value, partition, report = self.queue.popleft()
            refusal = self.broker.judge(topic, value)
            if refusal is None:
                self.broker.taken.append((topic, partition, value))
            self.dead = refusal is not None and self.gapless
            if report is not None:
                self.reports.append((report, refusal))

    def poll(self, timeout: float) -> int:
        reports, self.reports = self.reports, []
        for report, error in reports:
            report(error, None)
        if self.dead:
            raise KafkaException(KafkaError(KafkaError._GAPLESS_GUARANTEE, "a gap", True))
        return len(reports)

    def purge(self, **how: bool) -> None:
        for _, _, _, report in self.queue:
            if report is not None:
                self.reports.append((report, KafkaError(KafkaError._PURGE_QUEUE)))
        self.queue.clear()


@dataclass
class Shard:
    """A sender whose tokens below 0 are of progress."""

    shard = "s:edge/source"
    out: deque[Record] = field(default_factory=deque)
    done: list[int] = field(default_factory=list)

    def put(self, token: int, partition: int, value: bytes) -> None:
        self.out.append(Record(token, TOPIC, partition, b"k", value, 5))

    def safe(self, *tokens: int) -> None:
        self.done.extend(tokens)

    def carries_tuple(self, token: int) -> bool:
        return token >= 0

    def place(self, token: int) -> int:
        raise AssertionError("nothing is spooled here")

    def retract(self, token: int) -> None:
        raise AssertionError("nothing is spooled here")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker()
    monkeypatch.setattr(publisher, "Producer", lambda config: Producer(found, config))
    return found


def opened(directory: Path, clock: Callable[[], float] = lambda: 0.0) -> tuple[Publisher, Metrics]:
    metrics = Metrics("edge")
    files = DeadLetterFiles(directory / "letters", 10**6)
    spool = Spool(directory / "spool.db", 10**6)
    return Publisher(KafkaSettings(), "e", spool, files, metrics, clock=clock), metrics


def work(found: Publisher, broker: Broker, shard: Shard, turns: int, at_once: int = 10**6) -> None:
    for _ in range(turns):
        found.send(shard, movable=True)
        broker.producers[-1].work(at_once)
        found.poll()


def test_only_the_last_of_a_bundle_is_reported(tmp_path: Path, broker: Broker) -> None:
    found, _ = opened(tmp_path)
    shard = Shard()
    for i in range(3 * publisher.REPORT_EVERY):
        shard.put(i, i % 2, b"%d" % i)
    found.send(shard, movable=True)
    reported = [value for _, value, _, report in broker.producers[0].queue if report is not None]
    assert len(reported) == 4
    broker.producers[0].work(publisher.REPORT_EVERY - 1)
    found.poll()
    assert shard.done == []
    broker.producers[0].work(1)
    found.poll()
    assert shard.done == list(range(0, 2 * publisher.REPORT_EVERY, 2))
    broker.producers[0].work(10**6)
    found.poll()
    assert (sorted(shard.done), found.in_flight) == (list(range(3 * publisher.REPORT_EVERY)), 0)


@pytest.mark.parametrize("seed", range(30))
def test_refused_records_are_set_aside_and_all_others_arrive_in_order(
    tmp_path: Path, broker: Broker, seed: int
) -> None:
    r = random.Random(seed)
    broker.limits = {TOPIC: 100, DEAD_LETTERS: 500}
    found, metrics = opened(tmp_path)
    shard = Shard()
    values: dict[int, tuple[int, bytes]] = {}
    for i in range(300):
        bad = r.random()
        value = b"%d " % i
        if bad < 0.02:
            value += b"x" * r.choice([100, 200, 600])
        elif bad < 0.03:
            value = b"bad" + value
        values[i] = r.randint(0, 2), value
        shard.put(i, *values[i])
        if r.random() < 0.1:
            work(found, broker, shard, 1, r.choice([1, 5, 100]))
    work(found, broker, shard, 40)
    assert found.fault is None and found.in_flight == 0
    assert sorted(shard.done) == list(range(300))
    good = {i: v for i, v in values.items() if broker.judge(TOPIC, v[1]) is None}
    for partition in range(3):
        wanted = [value for p, value in good.values() if p == partition]
        came = [value for topic, p, value in broker.taken if (topic, p) == (TOPIC, partition)]
        assert list(dict.fromkeys(came)) == wanted
    letters = {value for topic, _, value in broker.taken if topic == DEAD_LETTERS}
    files = {file.read_bytes().split(b"\n", 1)[1] for file in tmp_path.glob("letters/*")}
    refused = {value for i, (_, value) in values.items() if i not in good}
    # What is bad for one topic is for the other here, too.
    assert files == {v for v in refused if len(v) > 500 or v.startswith(b"bad")}
    assert letters == refused - files
    text = metrics.exposition().decode()
    assert f'tamis_edge_refused_records_total{{edge="e",place="dead_letters"}} {len(refused)}.0' in text
    assert broker.producers[-1].gapless


def test_a_record_as_large_as_one_that_was_refused_is_not_tried(tmp_path: Path, broker: Broker) -> None:
    broker.limits = {TOPIC: 100}
    found, _ = opened(tmp_path)
    shard = Shard()
    shard.put(0, 0, b"x" * 150)
    work(found, broker, shard, 3)
    assert len(broker.producers) == 3  # one that failed, one that sought, one that goes on
    shard.put(1, 0, b"y" * 150)
    shard.put(2, 0, b"z")
    work(found, broker, shard, 3)
    assert (sorted(shard.done), len(broker.producers)) == ([0, 1, 2], 3)


def test_a_record_beyond_every_topic_goes_to_a_file_unseen_by_kafka(tmp_path: Path, broker: Broker) -> None:
    found, _ = opened(tmp_path)
    found._letters._files = DeadLetterFiles(tmp_path / "large", 10**8)
    shard = Shard()
    shard.put(0, 0, b"x" * MAX_RECORD_BYTES)
    work(found, broker, shard, 1)
    assert (shard.done, broker.taken, len(list(tmp_path.glob("large/*")))) == ([0], [], 1)


def test_a_dead_letter_waits_for_room_on_a_full_disk(tmp_path: Path, broker: Broker) -> None:
    size = 12 * 2**20
    with small_disk(tmp_path / "small", 32 * 2**20) as disk:
        reserve = Reserve(disk / "reserve", size)
        now = [0.0]
        found, metrics = opened(tmp_path, lambda: now[0])
        found._letters._files = DeadLetterFiles(disk / "letters", 10**8, reserve)
        shard = Shard()
        for i in range(2):
            shard.put(i, 0, b"%d" % i + b"x" * MAX_RECORD_BYTES)
        shard.put(2, 0, b"fine")
        fill(disk)
        found.send(shard, movable=True)
        # The reserve has room for one.
        assert (shard.done, found.fault, reserve.held, found.room) == ([0], None, False, False)
        assert len(list(disk.glob("letters/*"))) == 1
        for _ in range(3):
            now[0] += 10
            work(found, broker, shard, 1)
        # What the spool holds goes on, and so does what the edge says of itself; what was sent already, too.
        assert (sorted(shard.done), found.room, found.ready) == ([0, 2], False, True)
        found._spooling._spool.append("other", [Record(0, TOPIC, 0, b"k", b"spooled", 5)], [0])
        work(found, broker, shard, 2)
        assert found._spooling._spool.records == 0
        (disk / "ballast").unlink()
        assert reserve.hold()
        now[0] += 10
        work(found, broker, shard, 1)
        assert (sorted(shard.done), found.room, found._spooling.error) == ([0, 1, 2], True, None)
        assert len(list(disk.glob("letters/*"))) == 2
        assert 'place="file"} 2.0' in metrics.exposition().decode()


def test_refused_progress_and_other_errors_end_the_edge(tmp_path: Path, broker: Broker) -> None:
    found, _ = opened(tmp_path)
    for record in (
        Record(-1, TOPIC, 0, b"k", b"bad progress", 5),
        Record(1, TOPIC, 0, None, b"bad word of what was shed", 5),
    ):
        found, _ = opened(tmp_path)
        shard = Shard(deque([record]))
        work(found, broker, shard, 3)
        assert found.fault is not None and TOPIC in found.fault
        assert shard.done == []
    found, _ = opened(tmp_path / "other")
    broker.judge = lambda topic, value: KafkaError(  # type: ignore[method-assign]
        KafkaError.POLICY_VIOLATION
    )
    shard = Shard()
    shard.put(1, 0, b"fine")
    work(found, broker, shard, 1)
    assert found.fault is not None and shard.done == []


def test_a_missing_right_does_not_end_the_edge(tmp_path: Path, broker: Broker) -> None:
    found, _ = opened(tmp_path)
    broker.judge = lambda topic, value: KafkaError(  # type: ignore[method-assign]
        KafkaError.TOPIC_AUTHORIZATION_FAILED
    )
    shard = Shard()
    shard.put(1, 0, b"fine")
    work(found, broker, shard, 1)
    assert "not authorized: User:ANONYMOUS: no Write on topic" in str(found.denied)
    assert found.fault is None and shard.done == [] and found.in_flight == 1


def test_what_is_on_its_way_is_bounded_in_bytes(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "QUEUE_BYTES", 250)
    found, _ = opened(tmp_path)
    shard = Shard()
    for i in range(6):
        shard.put(i, 0, b"x" * 100)
    shard.put(6, 0, b"x" * 400)
    sizes = []
    while shard.out or found.in_flight:
        found.send(shard, movable=True)
        sizes.append(found.in_flight)
        assert found.room == (found._in_flight.bytes < 250)
        broker.producers[0].work(10**6)
        found.poll()
    assert (sizes, shard.done) == ([2, 2, 2, 1], list(range(7)))

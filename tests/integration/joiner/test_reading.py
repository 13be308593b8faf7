"""Ranges of offsets from a real Kafka: every committed record once, and an end where there are none."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import RefusedError, UnavailableError
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.topics import JOINER_PATTERN, MAX_RECORD_BYTES, PLANS
from tamis.settings import KafkaSettings
from tamis_joiner.reading import range_reader
from tamis_joiner.reading.offsets import LatestOffsets, Range, decode, encode, ranges
from tamis_joiner.reading.range_reader import RangeReader
from tamis_joiner.spark.source import OffsetsReader, options

A, B = "tamis.stream.a.1", "tamis.stream.b.1"
START = 1_700_000_000_000


class Log:
    """Topics of an empty broker, and what was written to them."""

    def __init__(self, bootstrap: str) -> None:
        self.config = KafkaSettings(bootstrap=bootstrap).portable_config()
        self.admin = AdminClient({**self.config})
        self.values: dict[tuple[str, int], list[bytes]] = {}

    def create(self, topic: str, partitions: int = 2) -> None:
        sizes = {"max.message.bytes": str(MAX_RECORD_BYTES)}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=sizes)])[topic].result(30)

    def delete(self, topic: str) -> None:
        """Returns when the broker knows of it: until then it takes records of a topic that is created again
        into the old one, and deletes them with it.
        """
        self.admin.delete_topics([topic])[topic].result(30)
        _soon(lambda: topic in self.admin.list_topics(timeout=30).topics, wanted=False)

    def write(self, topic: str, partition: int, count: int, size: int = 8, within: str = "") -> None:
        """Write records. `within`: in a transaction that is "committed", "aborted" or left "open"."""
        producer = Producer(
            # Idempotent: otherwise, where the first request for a new topic fails, later ones overtake it.
            {**self.config, "message.max.bytes": MAX_RECORD_BYTES, "enable.idempotence": True}
            | ({"transactional.id": f"{topic}/{partition}/{within}"} if within else {})
        )
        if within:
            producer.init_transactions(30)
            producer.begin_transaction()
        log = self.values.setdefault((topic, partition), [])
        for _ in range(count):
            value = b"%d" % len(log) + b" " * size
            log.append(value)
            producer.produce(topic, value, None, partition, timestamp=START + len(log))
        assert producer.flush(30) == 0
        if within == "committed":
            producer.commit_transaction(30)
        elif within == "aborted":
            producer.abort_transaction(30)
        self.open = producer  # an open transaction ends with its producer

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        at = TopicPartition(topic, partition, before)
        self.admin.delete_records([at])[at].result(30)

    def latest(self) -> dict[str, dict[str, int]]:
        return LatestOffsets(self.config, JOINER_PATTERN).latest({})[0]


@pytest.fixture
def log(empty: EmbeddedKafka) -> Log:
    return Log(empty.bootstrap)


@pytest.fixture
def reader(log: Log) -> Iterator[RangeReader]:
    found = RangeReader(log.config)
    yield found
    found.close()


def values(reader: RangeReader, *read: Range) -> dict[tuple[str, int], Sequence[bytes]]:
    found = reader.read(read)
    for part in found:
        assert len(part.values) == len(part.offsets) == len(part.arrived) > 0
        assert (part.offsets[1:] > part.offsets[:-1]).all()
    return {(part.topic, part.partition): part.values for part in found}


def test_ranges_have_each_record_once_however_they_are_cut(log: Log, reader: RangeReader) -> None:
    r = random.Random(1)
    for topic in (A, B):
        log.create(topic)
        for partition in range(2):
            log.write(topic, partition, 30_000)
    starts = dict.fromkeys(log.values, 0)
    for _ in range(12):
        cut = [
            Range(*at, start, min(30_000, start + r.choice((0, 1, 700, 9_000))))
            for at, start in starts.items()
        ]
        cut = [one for one in cut if one.start < one.end]
        found = values(reader, *cut)
        assert found == {one[:2]: log.values[one[:2]][one.start : one.end] for one in cut}
        # An attempt that failed is repeated, by this worker or by another one.
        assert values(reader, *cut) == found
        starts |= {one[:2]: one.end for one in cut}
    (part,) = reader.read([Range(A, 1, 100, 103)])
    assert part.offsets.tolist() == [100, 101, 102]
    assert part.arrived.tolist() == [(START + 101 + n) * 1000 for n in range(3)]


def test_little_is_fetched_beyond_a_range(log: Log) -> None:
    """What the client fetches after the end costs the broker and the worker as much as what is needed."""
    log.create(A, 1)
    log.write(A, 0, 60_000, size=100)
    fetched: list[int] = []

    def keep(statistics: str) -> None:
        partitions = orjson.loads(statistics)["topics"].get(A, {"partitions": {}})["partitions"]
        fetched.append(partitions.get("0", {}).get("rxmsgs", 0))

    reader = RangeReader({**log.config, "stats_cb": keep, "statistics.interval.ms": 50})
    try:
        read = values(reader, Range(A, 0, 0, 12_000))
        # A range of another topic, so that the client calls back once more.
        log.create(B, 1)
        log.write(B, 0, 1)
        deadline = time.monotonic() + 30
        while not fetched or fetched[-1] < 12_000:
            assert time.monotonic() < deadline
            values(reader, Range(B, 0, 0, 1))
    finally:
        reader.close()
    assert len(read[A, 0]) == 12_000
    # 17,000 to 26,000; all but some of the 60,000 if the client fetches as much as it does by itself.
    assert max(fetched) < 36_000


def test_a_range_may_end_with_offsets_that_have_no_record(log: Log, reader: RangeReader) -> None:
    """The marks of transactions, and aborted records."""
    log.create(A, 1)
    log.write(A, 0, 3)
    log.write(A, 0, 4, within="aborted")
    _soon(log.latest, {A: {"0": 8}})
    started = time.monotonic()
    assert values(reader, Range(A, 0, 0, 8)) == {(A, 0): log.values[A, 0][:3]}
    assert values(reader, Range(A, 0, 4, 7)) == {}
    log.write(A, 0, 2, within="committed")
    _soon(log.latest, {A: {"0": 11}})
    assert values(reader, Range(A, 0, 3, 8)) == {}
    assert values(reader, Range(A, 0, 3, 9)) == {(A, 0): log.values[A, 0][7:8]}
    assert time.monotonic() - started < range_reader.GONE_SECONDS


def test_an_open_transaction_is_not_read(log: Log) -> None:
    log.create(A, 1)
    log.write(A, 0, 3)
    log.write(A, 0, 4, within="open")
    assert log.latest() == {A: {"0": 3}}


def test_what_was_deleted_unread_is_left_out(log: Log, reader: RangeReader) -> None:
    log.create(A, 1)
    log.write(A, 0, 50)
    log.delete_records(A, 0, 20)
    assert values(reader, Range(A, 0, 10, 30)) == {(A, 0): log.values[A, 0][20:30]}
    assert values(reader, Range(A, 0, 5, 15)) == {}
    log.delete_records(A, 0, 50)
    assert values(reader, Range(A, 0, 20, 50)) == {}


def test_a_topic_that_is_gone_ends_its_ranges(
    log: Log, reader: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "GONE_SECONDS", 1.0)
    monkeypatch.setattr(range_reader, "SHORTER_SECONDS", 3.0)
    for topic in (A, B):
        log.create(topic, 1)
        log.write(topic, 0, 5)
    assert values(reader, Range(A, 0, 0, 5)) == {(A, 0): log.values[A, 0]}
    log.delete(A)
    assert values(reader, Range(A, 0, 2, 5), Range(B, 0, 0, 5)) == {(B, 0): log.values[B, 0]}
    # Created again, it has less.
    log.values.clear()
    log.create(A, 1)
    log.write(A, 0, 1)
    assert values(reader, Range(A, 0, 2, 5)) == {}
    # Within the short limits of this test the client may not know of the new topic yet.
    wanted = {(A, 0): log.values[A, 0]}
    assert _soon(lambda: values(reader, Range(A, 0, 0, 1)), wanted) == wanted


def test_the_largest_records_are_read(log: Log, reader: RangeReader) -> None:
    log.create(PLANS, 1)
    log.write(PLANS, 0, 3, MAX_RECORD_BYTES - 1000)
    assert values(reader, Range(PLANS, 0, 0, 3)) == {(PLANS, 0): log.values[PLANS, 0]}


def test_topics_come_and_go(log: Log) -> None:
    asked = LatestOffsets(log.config, JOINER_PATTERN)
    assert asked.earliest() == {}
    for name in (A, PLANS, "tamis.alarms", "tamis.stream.a.01"):
        log.create(name)
    log.write(A, 1, 5)
    log.delete_records(A, 1, 2)
    both = {A: {"0": 0, "1": 2}, PLANS: {"0": 0, "1": 0}}
    assert _soon(asked.earliest, both) == both
    # A partition that the batch before didn't know is read from its least offset on.
    end, begin = asked.latest({A: {"0": 0}})
    assert (end, begin) == ({A: {"0": 0, "1": 5}, PLANS: {"0": 0, "1": 0}}, both)
    log.delete(A)
    assert _soon(lambda: asked.latest(end), ({PLANS: both[PLANS]},) * 2)


def test_while_kafka_is_away_nothing_ends(
    log: Log, empty: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create(A, 1)
    log.write(A, 0, 5)
    source = OffsetsReader(options(log.config, JOINER_PATTERN, 3, [12]))
    reader = RangeReader(log.config)
    start = source.initialOffset()
    assert start == {A: {"0": 0}}
    batch = [(12, encode([Range(A, 0, 0, 3)]))], {A: {"0": 3}}
    assert _batch(source, start) == batch
    empty.stop()
    monkeypatch.setattr("tamis_joiner.reading.offsets.REQUEST_SECONDS", 1.0)
    assert _batch(source, start) == ([], start)
    monkeypatch.setattr(range_reader, "PATIENCE_SECONDS", 3.0)
    with pytest.raises(UnavailableError, match="can't be reached"):
        reader.read([Range(A, 0, 0, 5)])
    empty.start()
    assert values(reader, Range(A, 0, 0, 5)) == {(A, 0): log.values[A, 0]}
    assert _soon(lambda: _batch(source, start), batch) == batch
    reader.close()


def test_a_broker_that_does_not_answer_in_time_says_nothing_about_offsets(
    log: Log, empty: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client then gives offsets below 0 and no error: the joiner would read everything again."""
    log.create(A, 1)
    log.write(A, 0, 5)
    asked = LatestOffsets(log.config, JOINER_PATTERN)
    start = {A: {"0": 3}}
    right = {A: {"0": 5}}, start
    assert asked.latest(start) == right
    # It asks for offsets only, not for topics before.
    monkeypatch.setattr("tamis_joiner.reading.offsets.TOPICS_SECONDS", 600.0)
    monkeypatch.setattr("tamis_joiner.reading.offsets.REQUEST_SECONDS", 1.0)

    def is_unanswered() -> bool:
        try:
            found = asked.latest(start)
        except UnavailableError:
            return True
        assert found == right  # the signal has not reached all threads of the broker yet
        return False

    os.kill(empty.pid, signal.SIGSTOP)
    try:
        assert _soon(is_unanswered, wanted=True)
    finally:
        os.kill(empty.pid, signal.SIGCONT)
    assert _soon(lambda: asked.latest(start), right) == right


def test_a_leader_that_knows_less_for_a_while_is_waited_for(
    log: Log, empty: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it goes away meanwhile. Only a topic that Kafka doesn't know is gone sooner."""
    monkeypatch.setattr(range_reader, "GONE_SECONDS", 1.0)
    log.create(A, 1)
    log.write(A, 0, 5)
    reader = RangeReader(log.config)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(values, reader, Range(A, 0, 0, 8))
        time.sleep(2 * range_reader.SILENT_SECONDS + 1)
        empty.stop()
        time.sleep(range_reader.SILENT_SECONDS + 1)
        empty.start()
        log.write(A, 0, 4)
        assert reading.result(60) == {(A, 0): log.values[A, 0][:8]}
    reader.close()


def test_rows_of_a_batch_go_to_the_groups_of_their_partitions() -> None:
    source = OffsetsReader(options({"bootstrap.servers": "127.0.0.1:1"}, JOINER_PATTERN, 3, [12, 6]))
    start: dict[str, dict[str, int]] = {A: {"0": 3, "1": 4}}
    end = {A: {"0": 5, "1": 4}, B: {"0": 1, "1": 2}}
    rows = {group: decode(text) for group, text in source.readBetweenOffsets(start, end)}
    assert rows == {12: [Range(A, 0, 3, 5), Range(B, 0, 0, 1)], 6: [Range(B, 1, 0, 2)]}
    assert sorted(one for some in rows.values() for one in some) == ranges(start, end)
    assert list(source.readBetweenOffsets(end, end)) == []
    with pytest.raises(RefusedError, match=r"tamis\.stream\.a\.1 has more than the fleet's 2 partitions"):
        source.readBetweenOffsets({}, {A: {"2": 1}})


def _batch(source: OffsetsReader, start: dict[str, dict[str, int]]) -> tuple[object, object]:
    """The rows of the batch that begins at `start`, and its end."""
    rows, end = source.read(start)
    return list(rows), end


def _soon(ask: object, wanted: object) -> object:
    """What is asked, once it is `wanted`: a broker tells of changed topics a moment later."""
    deadline = time.monotonic() + 60
    while (found := ask()) != wanted:  # type: ignore[operator]
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found

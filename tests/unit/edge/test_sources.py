"""What sources make of what comes from outside, without a broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import KafkaError
from tests.unit.edge.plans import air, plan, topic

from tamis.planning.plan import Plan
from tamis.settings import KafkaSettings
from tamis_edge.config import Http, HttpSource, KafkaSource, MqttSource
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder, FieldMap
from tamis_edge.journal import Journal
from tamis_edge.sources.http import _DECODER, HttpSources, split
from tamis_edge.sources.journalled import MOST_UNPLANNED, STRAY
from tamis_edge.sources.kafka import KafkaShard, KafkaTopic
from tamis_edge.sources.mqtt import MqttShards


class Message:
    """What a consumer hands over: a reading, or word of the partition's end."""

    def __init__(self, offset: int, end: bool = False) -> None:
        self._offset, self._error = offset, KafkaError(KafkaError._PARTITION_EOF) if end else None

    def error(self) -> KafkaError | None:
        return self._error

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"{}"


def take(owner: KafkaTopic, *messages: Message) -> None:
    owner._take(messages, 5)  # type: ignore[arg-type]


def caught_up(shard: KafkaShard) -> bool:
    return shard.caught_up


@pytest.fixture
def partition() -> Iterator[tuple[KafkaTopic, KafkaShard]]:
    """A partition that its shard reads; nobody answers on that port, and nobody is asked."""
    source = KafkaSource(name="k", kind="kafka", topic="raw", stream="air")
    owner = KafkaTopic(source, KafkaSettings(bootstrap="127.0.0.1:1"), lambda _: None, lambda _: None)
    shard = KafkaShard(owner, source, 0, Commit())
    owner._shards[0] = shard
    shard.started, shard.paused = True, False
    yield owner, shard
    owner.close()


def test_a_partition_is_caught_up_though_its_end_was_told_before_its_last_readings_were_taken(
    partition: tuple[KafkaTopic, KafkaShard],
) -> None:
    owner, shard = partition
    take(owner, Message(0), Message(1), Message(2, end=True))
    assert not caught_up(shard)
    assert shard.poll(10, 5) is not None
    assert caught_up(shard)
    take(owner, Message(2))
    assert shard.poll(10, 6) is not None
    assert not caught_up(shard)  # the end was not told since


def test_what_is_told_between_messages_keeps_its_place(partition: tuple[KafkaTopic, KafkaShard]) -> None:
    owner, shard = partition
    take(owner, Message(0), Message(1, end=True), Message(1))
    assert not shard.at_end
    assert (shard.next, shard.waiting, shard.bytes) == (2, 2, 4)
    found = shard.poll(10, 5)
    assert found is not None
    assert (found.offsets.tolist(), found.payloads) == ([0, 1], [b"{}"] * 2)
    take(owner, *(Message(i) for i in range(2, 9)))
    parts = [shard.poll(3, 5) for _ in range(4)]
    assert [None if part is None else part.offsets.tolist() for part in parts] == [
        [2, 3, 4],
        [5, 6, 7],
        [8],
        None,
    ]
    assert (shard.waiting, shard.bytes) == (0, 0)


def test_a_topic_whose_brokers_are_away_is_told_until_something_comes(
    partition: tuple[KafkaTopic, KafkaShard],
) -> None:
    owner, _ = partition
    assert owner.troubles() == {"k": None}
    deadline = time.monotonic() + 20
    while owner.troubles()["k"] is None:
        owner.shards()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    take(owner, Message(0, end=True))
    assert owner.troubles() == {"k": None}


def test_a_partition_that_is_read_again_is_not_caught_up(partition: tuple[KafkaTopic, KafkaShard]) -> None:
    owner, shard = partition
    take(owner, Message(0, end=True))
    assert caught_up(shard)
    shard.paused = True  # so that stopping asks the broker for nothing
    shard.stop()
    assert not caught_up(shard)


def test_bodies_are_split_into_readings() -> None:
    assert split(b'{"a":1}', "application/json") == [b'{"a":1}']
    assert split(b'[{"a":1}, 2]', "") == [b'{"a":1}', b"2"]
    assert split(b'{"a":1}\nnot json\n', "") == [b'{"a":1}', b"not json"]
    assert split(b'{"a":1}', "application/x-ndjson") == [b'{"a":1}']
    for body in (b"", b"7", b"not json", b"not\njson", b"[1,]", b'[{"a":1} {"a":2}]'):
        with pytest.raises(ValueError, match=r"JSON|object nor array"):
            split(body, "")


def test_items_of_an_array_stay_as_they_were_sent() -> None:
    items = [
        b'{"a": 1.0, "a":2}',
        '{"ü" :"]\\" ,"}'.encode(),
        b"123456789012345678901234567890",
        b"[ ]",
        b'"x"',
    ]
    assert split(b" [\n" + b" ,\t".join(items) + b"\r\n] ", "") == items
    assert split(b"[ ]", "") == []


def test_a_reading_that_is_nested_deeply_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"a":' + b"[" * 400 + b"]" * 400 + b"}"
    assert split(deep, "") == split(b"[" + deep + b"]", "") == [deep]
    decoded = Decoder(air([topic([])]), FieldMap()).payloads([deep], 0)
    assert len(decoded.offences) == 1

    def give_up(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(_DECODER, "raw_decode", give_up)
    with pytest.raises(ValueError, match="item of the array"):
        split(b"[1]", "")


# ---- names that senders make up


class Sent:
    """An MQTT message."""

    def __init__(self, topic: str, payload: bytes) -> None:
        self.topic, self.payload = topic, payload


def test_mqtt_levels_that_are_no_streams_share_one_shard(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 10**6)
    source = MqttSource(name="q", kind="mqtt", topic="plant/{stream}/t")
    known: set[str] = set()

    def planned(stream: str) -> bool | None:
        return stream in known if known else None

    shards = MqttShards(source, edge="e", journal=journal, limit=10**6, planned=planned, wake=lambda: None)

    def place(level: str) -> str | None:
        stream, payload = shards._placed(Sent(f"plant/{level}/t", b"{}"))  # type: ignore[arg-type]
        if stream is not None:
            journal.append(shards._shard(stream).name, [payload], 5).result()
        return stream

    for level in ("air water", "", "ä", "1st", "x" * 300):
        assert place(level) == STRAY
    for i in range(MOST_UNPLANNED - 1):
        assert place(f"s{i}") == f"s{i}"
    assert place("one_more") is None
    assert place("s7") == "s7"
    known.add("air")
    assert [place(level) for level in ("air", "s7", "made_up")] == ["air", STRAY, STRAY]
    assert len(shards.shards()) == MOST_UNPLANNED + 1
    (stray,) = [shard for shard in shards.shards() if shard.stream == STRAY]
    stray.start(0, Decoder(air([topic([])]), FieldMap()))
    found = stray.poll(100, 0)
    assert found is not None
    assert list(found.streams) == ["air water", "", "ä", "1st", "x" * 300, "s7", "made_up"]
    assert set(found.payloads) == {b"{}"}
    journal.close()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[tuple[HttpSources, list[Plan]]]:
    """A real server with a journal and no Kafka; put a plan into the list to have one."""
    journal = Journal(tmp_path / "j.db", 10**6)
    plans: list[Plan] = []
    sources = HttpSources(
        [HttpSource(name="http", kind="http")],
        edge="e",
        http=Http(port=0, hosts=["edge.plant.example"]),
        journal=journal,
        plan=lambda: plans[-1] if plans else None,
        wake=lambda: None,
    )
    sources.start()
    yield sources, plans
    sources.stop()
    journal.close()


def test_http_takes_only_names_that_a_stream_can_have_and_not_any_number(
    http: tuple[HttpSources, list[Plan]],
) -> None:
    sources, plans = http
    with httpx.Client(base_url=sources.url) as client:

        def post(stream: str, **headers: str) -> httpx.Response:
            return client.post(f"/v1/streams/{stream}", content=b"{}", headers=headers)

        assert [post(name).status_code for name in ("a%20b", "1st", "x" * 201)] == [404] * 3
        for i in range(MOST_UNPLANNED):
            assert post(f"s{i}").status_code == 202
        busy = post("one_more")
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "5")
        assert post("s3").status_code == 202
        assert len(sources.shards()) == MOST_UNPLANNED
        plans.append(plan(air([topic([])]), []))
        assert post("air").status_code == 202
        assert post("s3").status_code == 404
        assert "known: air" in post("made_up").json()["detail"]
        assert post("air", host="evil.example").status_code == 421
        assert post("air", host="edge.plant.example").status_code == 202
        assert post("air", origin="http://elsewhere.example").status_code == 403


def test_http_says_as_problem_documents_what_there_is_not(http: tuple[HttpSources, list[Plan]]) -> None:
    with httpx.Client(base_url=http[0].url) as client:
        nowhere, other = client.post("/v1/alerts"), client.get("/v1/streams/air")
    assert (nowhere.status_code, other.status_code) == (404, 405)
    assert other.headers["allow"] == "POST"
    for answer, detail in (
        (nowhere, "there is no POST /v1/alerts"),
        (other, "there is no GET /v1/streams/air"),
    ):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == detail
        assert answer.json()["status"] == answer.status_code

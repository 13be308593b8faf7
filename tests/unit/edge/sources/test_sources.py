"""Sources and their input, without a broker."""

from __future__ import annotations

import gzip
import ssl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from confluent_kafka import KafkaError
from tests.fixtures.certificates import issue_server
from tests.fixtures.kafka_message import Message
from tests.unit.edge.plans import air, plan, topic

from tamis.local.broker_security import Authority
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.settings.http_security import HttpSecurity
from tamis.settings.token_file import TokenFile, token_entry
from tamis.web.tls import CertificateFiles, Certificates
from tamis.web.tokens import Token, digest, new_token
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import Http, HttpSource, KafkaSource, MqttSource
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import Payloads
from tamis_edge.sources.file_rows import part
from tamis_edge.sources.http import MOST_READINGS, HttpSources, split
from tamis_edge.sources.journal_shard import MOST_UNPLANNED, STRAY
from tamis_edge.sources.kafka.shard import STALLED, KafkaShard
from tamis_edge.sources.kafka.topic import ASK_EVERY, DENIED, KafkaTopic
from tamis_edge.sources.mqtt import MqttShards
from tamis_edge.storage.journal import Journal


def take(owner: KafkaTopic, *messages: Message) -> None:
    owner._take(messages, 5)  # type: ignore[arg-type]


def caught_up(shard: KafkaShard) -> bool:
    return shard.caught_up


@dataclass
class Clock:
    """Monotonic seconds."""

    seconds: float = 1000.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def partition(clock: Clock) -> Iterator[tuple[KafkaTopic, KafkaShard]]:
    """A partition that its shard reads; nobody answers on that port, and nobody is asked."""
    source = KafkaSource(name="k", kind="kafka", topic="raw", stream="air")
    owner = KafkaTopic(
        source,
        KafkaSettings(bootstrap="127.0.0.1:1"),
        lambda _: None,
        lambda _: None,
        clock=lambda: clock.seconds,
    )
    shard = KafkaShard(owner, source, 0, Commit(), lambda: clock.seconds)
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
    assert isinstance(found, Payloads)
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


def test_a_confirmed_end_is_one_that_was_asked_for_afterwards(
    partition: tuple[KafkaTopic, KafkaShard], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, shard = partition
    broker = Answers()
    monkeypatch.setattr(owner, "_ends", broker)
    take(owner, Message(0), Message(1, end=True))
    assert shard.poll(10, 5) is not None
    assert shard.read_through(1)
    broker.ends = {0: 1}  # the answer to an earlier question
    shard.confirm_end()
    owner._ask_for_ends()
    assert broker.asked == [0], "at once, though the partition isn't silent"
    assert not shard.read_through(1)
    take(owner, Message(1, end=True))  # of a fetch that was on its way
    assert not shard.read_through(1)
    assert caught_up(shard), "others aren't concerned"
    broker.ends = {0: 4}
    owner._ask_for_ends()
    take(owner, Message(1), Message(2, end=True))
    assert shard.poll(10, 5) is not None
    assert not shard.read_through(2), "readings that the source had are missing"
    # Behind the last one there is the marker of a transaction.
    take(owner, Message(2), Message(4, end=True))
    assert not shard.read_through(2), "one waits"
    assert shard.poll(10, 5) is not None
    assert shard.read_through(3)
    take(owner, Message(4))
    assert shard.read_through(4), "it has more to read again"


class Answers:
    """The broker's answers to the questions for ends."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.ends: dict[int, int] = {}

    def ask(self, partitions: Iterable[int]) -> None:
        self.asked += partitions

    def answers(self) -> dict[int, int]:
        ends, self.ends = self.ends, {}
        return ends

    def forget(self) -> None:
        self.ends = {}

    def close(self) -> None:
        """Nothing is open."""


def test_a_silent_partition_is_asked_for_its_end_and_never_sought(
    partition: tuple[KafkaTopic, KafkaShard], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, shard = partition
    broker = Answers()
    monkeypatch.setattr(owner, "_ends", broker)
    # A seek throws away what is being fetched.
    monkeypatch.setattr(owner, "resume", lambda shard, offset: pytest.fail("it sought"))
    shard.heard = clock.seconds
    owner._ask_for_ends()
    assert broker.asked == []
    clock.seconds += ASK_EVERY + 0.1
    owner._ask_for_ends()
    owner._ask_for_ends()  # the answer is awaited
    assert broker.asked == [0]
    # Nothing was read, and no end was told: where the partition begins isn't known.
    broker.ends = {0: 0}
    owner._ask_for_ends()
    assert not caught_up(shard)
    take(owner, Message(0), Message(1), Message(2, end=True))
    assert shard.poll(10, 5) is not None
    assert caught_up(shard)
    owner._on_error(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert not caught_up(shard)
    trouble = owner.troubles()["k"]
    assert trouble is not None
    assert trouble.startswith("Kafka at 127.0.0.1:1: can't be reached: Connection refused")
    broker.ends = {0: 2}
    owner._ask_for_ends()
    assert caught_up(shard)
    assert owner.troubles() == {"k": None}


def test_a_missing_right_is_told_though_the_broker_answers_other_questions(
    partition: tuple[KafkaTopic, KafkaShard], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, shard = partition
    broker = Answers()
    monkeypatch.setattr(owner, "_ends", broker)
    take(owner, Message(0), Message(1), Message(2, end=True))
    assert shard.poll(10, 5) is not None
    take(owner, Message(2, code=KafkaError.GROUP_AUTHORIZATION_FAILED))
    broker.ends = {0: 2}
    for _ in range(3):
        clock.seconds += DENIED / 3
        owner._ask_for_ends()
        assert caught_up(shard)
        assert "no Read on group tamis-edge.air.raw;" in str(owner.troubles()["k"])
    clock.seconds += 0.1
    assert owner.troubles() == {"k": None}


def test_an_offset_that_is_gone_is_looked_for_once_its_shard_is_taken_up(
    partition: tuple[KafkaTopic, KafkaShard], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it isn't known how many readings are lost, and what comes then would be dropped."""
    owner, shard = partition
    monkeypatch.setattr(owner, "_ends", Answers())
    found: list[int | None] = []
    monkeypatch.setattr(owner, "_reposition", lambda shard: found.append(shard.next))
    shard.started = False
    take(owner, Message(10, code=KafkaError._AUTO_OFFSET_RESET))
    assert found == []
    shard.started, shard.next, shard.heard = True, 10, clock.seconds
    clock.seconds += ASK_EVERY + 0.1
    owner._ask_for_ends()
    assert found == [10]
    take(owner, Message(10, code=KafkaError._AUTO_OFFSET_RESET))
    assert found == [10, 10]


def test_a_partition_is_at_its_end_behind_records_that_are_no_readings(
    partition: tuple[KafkaTopic, KafkaShard],
) -> None:
    owner, shard = partition
    take(owner, Message(0), Message(2, end=True))  # behind the reading is the end of a transaction
    owner._on_error(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert shard.poll(10, 5) is not None
    shard.ends_at(2)
    assert caught_up(shard)


def test_readings_that_wait_and_do_not_come_are_told(
    partition: tuple[KafkaTopic, KafkaShard], clock: Clock
) -> None:
    owner, shard = partition
    take(owner, Message(0), Message(1, end=True))
    assert shard.poll(10, 5) is not None
    clock.seconds += 3600
    shard.ends_at(8)
    assert not caught_up(shard)
    assert owner.troubles() == {"k": None}  # they may come any moment
    clock.seconds += STALLED + 1
    trouble = owner.troubles()["k"]
    assert trouble is not None
    assert "air:raw/0: 7 readings wait in Kafka, and none has come for 11 s" in trouble
    take(owner, Message(1))
    assert owner.troubles() == {"k": None}


def test_bodies_are_split_into_readings() -> None:
    assert split(b'{"a":1}', "application/json") == [b'{"a":1}']
    assert split(b'[{"a":1}, 2]', "") == [b'{"a":1}', b"2"]
    assert split(b'{"a":1}\nnot json\n', "") == [b'{"a":1}', b"not json"]
    assert split(b'{"a":1}', "application/x-ndjson") == [b'{"a":1}']
    for body in (b'{"a":1}', b'[{"a":1}]', b'{"a":1}\n{"a":1}'):
        assert split(b"\xef\xbb\xbf" + body, "") == split(body, "")
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


def test_a_reading_that_is_nested_deeply_is_a_dead_letter() -> None:
    deep = b'{"a":' + b"[" * 400 + b"]" * 400 + b"}"
    assert split(deep, "") == split(b"[" + deep + b"]", "") == [deep]
    assert split(deep + b"\n" + deep, "") == [deep, deep]
    decoded = Decoder(air([topic([])]), FieldMap()).payloads([deep], 0)
    assert [one.error for one in decoded.offences] == ["nested more than 100 levels deep"]


@pytest.mark.parametrize("number", ["NaN", "nan", "Infinity", "-Infinity", "inf", "1e999", "9" * 400])
def test_readings_beside_one_with_a_number_that_is_not_finite_are_kept(number: str) -> None:
    good, bad = b'{"temp": 1}', b'{"temp": %s}' % number.encode()
    assert split(bad, "") == [bad]
    assert split(b"[%s, %s,%s]" % (good, bad, good), "") == [good, bad, good]
    assert split(b"[\n%s,\n%s\n]\n" % (bad, good), "") == [bad, good]
    assert split(b"%s\n%s\n" % (bad, good), "application/x-ndjson") == [bad, good]
    assert split(b"%s\n%s" % (bad, bad), "") == [bad, bad]


def test_an_item_that_is_not_json_does_not_take_others_with_it() -> None:
    assert split(b'[{"a":1}, {"b":}, {"a":2}]', "") == [b'{"a":1}', b'{"b":}', b'{"a":2}']
    for body in (b'[{"b":}]', b'[{"b":},{"b":}]', b'[{"a":1},,{"a":1}]', b'[{"a":1}', b'[{"a":1}]]'):
        with pytest.raises(ValueError, match="JSON"):
            split(body, "")


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


def test_a_shared_subscription_has_the_level_of_the_stream_where_its_topics_have_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 10**6)
    source = MqttSource(name="q", kind="mqtt", topic="$share/edges/plant/{stream}/t")
    shards = MqttShards(
        source, edge="e", journal=journal, limit=10**6, planned=lambda _: True, wake=lambda: None
    )
    assert shards._placed(Sent("plant/air/t", b"{}")) == ("air", b"{}")  # type: ignore[arg-type]
    assert shards._filter == "$share/edges/plant/+/t"
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


def test_http_with_tokens_and_tls_takes_what_a_token_may_send(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = issue_server(authority, "edge")
    tokens = tmp_path / "tokens.yaml"
    texts = {streams: new_token() for streams in ("air", None)}
    given = [
        Token(str(streams), digest(text), "writer", frozenset([streams]) if streams else None)
        for streams, text in texts.items()
    ]
    tokens.write_text(f"tokens: {[token_entry(token) for token in given]}\n")
    journal = Journal(tmp_path / "j.db", 10**6)
    refused: list[str] = []
    sources = HttpSources(
        [HttpSource(name="http", kind="http")],
        edge="e",
        http=Http(port=0),
        journal=journal,
        plan=lambda: None,
        wake=lambda: None,
        security=HttpSecurity(
            TokenFile(tokens), Certificates(CertificateFiles(issued.certificate, issued.key))
        ),
        count_refused=refused.append,
    )
    sources.start()
    try:
        trusted = ssl.create_default_context(cafile=authority.certificate)
        with httpx.Client(base_url=sources.url, verify=trusted) as client:

            def post(stream: str, token: str | None) -> int:
                headers = {"authorization": f"Bearer {token}"} if token else {}
                return client.post(f"/v1/streams/{stream}", content=b"{}", headers=headers).status_code

            assert sources.url.startswith("https://")
            assert post("air", texts["air"]) == post("water", texts[None]) == 202
            assert post("water", texts["air"]) == 403
            assert post("air", None) == post("air", "other") == 401
            assert refused == ["not_allowed", "no_token", "unknown_token"]
            tokens.write_text("tokens: []\n")
            deadline = time.monotonic() + 10
            while post("air", texts["air"]) == 202:  # until the file is read again
                assert time.monotonic() < deadline
                time.sleep(0.1)
    finally:
        sources.stop()
        journal.close()


def test_http_says_as_problem_documents_what_there_is_not(http: tuple[HttpSources, list[Plan]]) -> None:
    with httpx.Client(base_url=http[0].url) as client:
        nowhere, other = client.post("/v1/alerts"), client.get("/v1/streams/air")
        slash = client.post("/v1/streams/air/")
    assert (nowhere.status_code, other.status_code, slash.status_code) == (404, 405, 404)
    assert other.headers["allow"] == "POST"
    for answer, detail in (
        (nowhere, "there is no POST /v1/alerts"),
        (other, "there is no GET /v1/streams/air"),
        (slash, "there is no POST /v1/streams/air/"),
    ):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == detail
        assert answer.json()["status"] == answer.status_code


def test_a_compressed_body_is_refused_by_its_encoding(http: tuple[HttpSources, list[Plan]]) -> None:
    with httpx.Client(base_url=http[0].url) as client:

        def post(body: bytes, encoding: str) -> httpx.Response:
            return client.post("/v1/streams/air", content=body, headers={"content-encoding": encoding})

        refused = post(gzip.compress(b"{}"), "gzip")
        assert (refused.status_code, post(b"{}", "Identity").status_code) == (415, 202)
        assert refused.json()["detail"] == (
            "Content-Encoding 'gzip' is not supported; send the body uncompressed"
        )


@pytest.mark.parametrize(("before", "between", "after"), [(b"[", b",", b"]"), (b"", b"\n", b"")])
def test_a_request_has_a_limited_number_of_readings(
    http: tuple[HttpSources, list[Plan]], before: bytes, between: bytes, after: bytes
) -> None:
    """Five million of them kept all other senders waiting for 41 s."""
    with httpx.Client(base_url=http[0].url, timeout=30) as client:
        body = before + between.join([b"{}"] * (MOST_READINGS + 1)) + after
        refused = client.post("/v1/streams/air", content=body)
        taken = client.post("/v1/streams/air", content=before + between.join([b"{}"] * 3) + after)
    assert (refused.status_code, taken.status_code) == (413, 202)
    assert refused.json()["detail"] == "the limit of one request is 100000 readings; send them in parts"
    assert taken.json() == {"accepted": 3}


def test_readings_keep_the_streams_that_they_were_sent_for_when_deliveries_are_joined_and_split() -> None:
    first = Payloads(np.arange(2), np.zeros(2, np.int64), [b"a", b"b"], ["air", "sea"])
    second = Payloads(np.array([2]), np.zeros(1, np.int64), [b"c"], ["land"])
    whole = Payloads.concat([first, second])
    assert whole.streams == ["air", "sea", "land"]
    left, right = whole.split(1)
    assert (left.streams, right.streams) == (["air"], ["sea", "land"])
    assert part(whole, 1, 3, 7).streams == ["sea", "land"]  # type: ignore[attr-defined]

"""Newest alarms, episodes, readings and dead letters, as the registry shows them."""

from __future__ import annotations

import time
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Message, Producer
from tests.stream_records import progress_record
from tests.unit.registry.test_openapi import Made

from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES
from tamis.settings import KafkaSettings
from tamis_registry.kafka.newest import NewestReader

TIMES = range(700)


def alarm(number: int, alert: str = "hot") -> bytes:
    tuples = {"a": {"k": "k1", "ts": number, "v": 60}}
    return orjson.dumps({"alert": alert, "key": ["k1"], "event_time": number, "row": {}, "tuples": tuples})


@pytest.fixture
def running(fresh: str, start: Any, sql: Any) -> Any:
    registry = start(fresh).ready()
    registry.sql(sql())
    return registry


def send(bootstrap: str, topic: str, values: list[tuple[int, int, bytes]], headers: Any = None) -> None:
    """Write values to partitions, each with Kafka's time in milliseconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for partition, moment, value in values:
        producer.produce(topic, value, b"k", partition, timestamp=moment, headers=headers)
    assert producer.flush(30) == 0


def test_newest_records_over_http(running: Any) -> None:
    """The oracle knows all that was written."""
    now = time.time_ns() // 1_000_000
    # Alarms of two alerts over both partitions, with more than one step's records, and one that is no JSON.
    written = [(n % 2, now - 1000 + n, alarm(n, "cold" if n % 5 else "hot")) for n in TIMES]
    send(running.bootstrap, ALARMS, [*written, (0, now, b'not JSON "hot"')])
    types = Made()
    found = running.get("alerts/HOT/alarms?limit=500")
    types.check("/v1/alerts/{name}/alarms", found)
    expected = [n for n in reversed(TIMES) if n % 5 == 0]
    assert [one["value"]["event_time"] for one in found["records"]] == expected
    assert (found["complete"], found["unreadable"], found["read"]) == (True, 1, len(TIMES) + 1)
    few = running.get("alerts/hot/alarms?limit=3")
    assert [one["value"]["event_time"] for one in few["records"]] == expected[:3]
    assert not few["complete"] and few["read"] < len(TIMES)
    assert few["records"][0]["time"] == (now - 1000 + expected[0]) * 1000
    # An alert without a definition has records, or is unknown.
    assert running.get("alerts/cold/alarms?limit=1")["records"][0]["value"]["event_time"] == 699
    assert running.call("GET", "/v1/alerts/nobody/alarms").status_code == 404
    opened = {
        "alert": "hot",
        "key": ["k1"],
        "episode": "e",
        "event": "opened",
        "start": 1,
        "end": 2,
        "alarms": 1,
    }
    send(running.bootstrap, EPISODES, [(1, now, orjson.dumps(opened))])
    (episode,) = running.get("alerts/hot/episodes")["records"]
    assert episode["value"] == opened
    for limit in ("0", "501", "x"):
        assert running.call("GET", f"/v1/alerts/hot/alarms?limit={limit}").status_code == 400


def test_readings_are_tuples_of_the_stream_s_topics(running: Any) -> None:
    now = time.time_ns() // 1_000_000
    assert running.get("streams/air/readings") == {
        "records": [],
        "not_shown": [],
        "complete": True,
        "read": 0,
        "unreadable": 0,
    }
    tuple_ = {"k": "k1", "ts": 5, "v": 7.5, "_": {"shard": "air:e/s", "plan": 2, "activation": 0}}
    send(
        running.bootstrap,
        "tamis.stream.air.1",
        [(0, now, orjson.dumps(tuple_)), (0, now + 1, progress_record("air:e/s", 2, 0, 6)), (1, now, b"[]")],
    )
    found = running.get("streams/AIR/readings")
    Made().check("/v1/streams/{name}/readings", found)
    assert [one["value"] for one in found["records"]] == [tuple_]
    assert (found["read"], found["unreadable"]) == (3, 1)
    assert running.call("GET", "/v1/streams/nowhere/readings").status_code == 404


def test_a_value_that_is_nested_too_deeply_hides_no_other(running: Any) -> None:
    now = time.time_ns() // 1_000_000
    deep = orjson.dumps({"alert": "hot", "row": {"x": 1}}).replace(b"1}", b"[" * 300 + b"]" * 300 + b"}")
    send(running.bootstrap, ALARMS, [(0, now, alarm(1)), (1, now + 1, deep), (0, now + 2, alarm(2))])
    found = running.get("alerts/hot/alarms")
    Made().check("/v1/alerts/{name}/alarms", found)
    assert [one["value"]["event_time"] for one in found["records"]] == [2, 1]
    assert found["not_shown"] == [
        {
            "topic": ALARMS,
            "partition": 1,
            "offset": 0,
            "time": (now + 1) * 1000,
            "why": "its value is nested deeper than 254 levels",
        }
    ]
    assert found["complete"]


def test_a_derived_stream_without_a_topic_says_so(running: Any) -> None:
    running.sql(
        "CREATE STREAM both AS SELECT a.k, a.ts, a.v FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN"
        " a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '1' SECOND WHERE a.v + s.v > 20;"
    )
    answer = running.call("GET", "/v1/streams/both/readings")
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert "stream both has no topic" in answer.json()["detail"]


def test_dead_letters_have_reasons_and_samples(running: Any) -> None:
    now = time.time_ns() // 1_000_000
    long = "ä" * 3000  # the cut is within a character of two bytes if an odd number stands before
    payloads = [b'{"v": 200}', b"\xff\xfe", b"x" + long.encode()]
    reasons = [Reason.OUT_OF_DOMAIN, Reason.UNDECODABLE, Reason.UNDECODABLE]
    for number, (payload, reason) in enumerate(zip(payloads, reasons, strict=True)):
        letter = DeadLetter(payload, "edge", "raw.air", 3, number, reason, "v: too large", "roof", "air")
        send(running.bootstrap, DEAD_LETTERS, [(0, now + number, payload)], letter.headers())
    found = running.get("dead-letters")
    Made().check("/v1/dead-letters", found)
    assert [one["source_offset"] for one in found["records"]] == [2, 1, 0]
    assert {(one["edge"], one["stream"]) for one in found["records"]} == {("roof", "air")}
    assert found["reasons"] == {"out_of_domain": 1, "undecodable": 2}
    texts = [(one["text"], one["base64"], one["bytes"]) for one in found["records"]]
    assert texts == [("x" + "ä" * 2047, None, 6001), (None, "//4=", 2), ('{"v": 200}', None, 10)]
    only = running.get("dead-letters?reason=out_of_domain&limit=1")
    assert [one["reason"] for one in only["records"]] == ["out_of_domain"]
    assert running.call("GET", "/v1/dead-letters?reason=bad").status_code == 400


def test_a_search_ends_where_its_bytes_run_out(running: Any) -> None:
    """It then has the newest records, and says that there may be more."""
    now = time.time_ns() // 1_000_000
    send(running.bootstrap, ALARMS, [(0, now + n, b"x" * 1000) for n in range(2000)])

    def last(message: Message) -> int | None:
        return message.offset() if message.offset() in (0, 1999) else None

    few = NewestReader(KafkaSettings(bootstrap=running.bootstrap), most_bytes=100_000).read([ALARMS], last, 2)
    assert [one.value for one in few.entries] == [1999]
    assert not few.complete and few.read < 1000
    whole = NewestReader(KafkaSettings(bootstrap=running.bootstrap)).read([ALARMS], last, 2)
    assert [one.value for one in whole.entries] == [1999, 0]
    assert whole.complete and whole.read == 2000

"""The edge at the limits of Kafka: records that it refuses or that are large, readings that it deleted."""

from __future__ import annotations

from typing import Any

import orjson
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.edges import PARTITIONS, Bench, Message, Reader, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.messaging.topics import ACKS, DEAD_LETTERS, MAX_RECORD_BYTES

T0 = 1_700_000_000_000_000
MIB = 2**20


def create(bench: Bench, name: str, partitions: int, most: int) -> None:
    """A topic that takes records of at most so many bytes."""
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    made = admin.create_topics([NewTopic(name, partitions, 1, config={"max.message.bytes": str(most)})])
    made[name].result()
    # Until the broker says that it is there, the bench would create it once more.
    wait_for(name, lambda: name in admin.list_topics(timeout=10).topics)


def produce_large(bench: Bench, name: str, value: bytes) -> None:
    config = {"bootstrap.servers": bench.bootstrap, "message.max.bytes": MAX_RECORD_BYTES}
    producer = Producer(config)
    producer.produce(name, value, partition=0)
    assert producer.flush(10) == 0


def reading(i: int, station: str | None = None) -> dict[str, Any]:
    return {"station": station or f"s{i % 5}", "ts": T0 + i * 1000, "temp": float(i % 50)}


def letters(reader: Reader) -> list[Message]:
    return [m for m in reader.read() if m.topic == DEAD_LETTERS]


def numbers(reader: Reader) -> list[int]:
    return [(m.tuple["ts"] - T0) // 1000 for m in reader.of("tuple")]


def test_what_kafka_refuses_for_good_is_set_aside_and_the_rest_goes_on(bench: Bench) -> None:
    create(bench, TOPIC, PARTITIONS, 200_000)
    create(bench, "raw", 1, MAX_RECORD_BYTES)
    bench.publish(everything("air:h/http", "air:raw/0"))
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    config = "sources:\n  - {kind: http, name: http}\n  - {kind: kafka, name: k, stream: air, topic: raw}\n"
    edge = bench.edge("h", config).start()
    n = 0
    for large in (500_000, 400_000):
        batch = [reading(n + i) for i in range(200)]
        batch[100]["station"] = "x" * large
        assert edge.post("air", batch).status_code == 202
        n += 200
    wanted = [i for i in range(n) if i % 200 != 100]
    wait_for("the others", lambda: len(set(numbers(reader))) == len(wanted))
    assert sorted(set(numbers(reader))) == wanted
    for station in range(5):
        mine = [i for i in dict.fromkeys(numbers(reader)) if i % 5 == station]
        assert mine == sorted(mine)
    dead = wait_for("two dead letters", lambda: len(d := letters(reader)) == 2 and d)
    assert [orjson.loads(m.value)["ts"] for m in dead] == [T0 + 100_000, T0 + 300_000]
    assert {m.headers["reason"] for m in dead} == {"too_large"}
    assert {m.headers["source.topic"] for m in dead} == {TOPIC}
    # Larger than even the dead letters' topic takes here: a file.
    huge = orjson.dumps({**reading(0), "site": "y" * 3 * MIB})
    produce_large(bench, "raw", huge)
    folder = bench.directory / "h" / "dead-letters"
    wait_for("a file", lambda: edge.metric("tamis_edge_refused_records_total", place="file"))
    (file,) = folder.iterdir()
    headers, payload = file.read_bytes().split(b"\n", 1)
    assert payload == huge
    assert orjson.loads(headers)["reason"] == "too_large"
    assert edge.metric("tamis_edge_refused_records_total", place="dead_letters") == 2
    wait_for("all is done with", lambda: edge.metric("tamis_edge_inbox_records") == 0)
    edge.stop()
    edge.start()
    assert edge.post("air", [reading(n)]).status_code == 202
    wait_for("what came later", lambda: n in numbers(reader))
    assert len(letters(reader)) == 2
    edge.stop()


def test_large_readings_travel_whole(bench: Bench) -> None:
    create(bench, TOPIC, PARTITIONS, MAX_RECORD_BYTES)
    create(bench, DEAD_LETTERS, 1, MAX_RECORD_BYTES)
    create(bench, "raw", 1, MAX_RECORD_BYTES)
    bench.publish(everything("air:h/http", "air:raw/0"))
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    config = "sources:\n  - {kind: http, name: http}\n  - {kind: kafka, name: k, stream: air, topic: raw}\n"
    edge = bench.edge("h", config).start()
    for first in range(0, 60, 15):
        batch = [reading(i, str(i) + "x" * 890_000) for i in range(first, first + 15)]
        assert edge.post("air", batch).status_code == 202
    dead = [orjson.dumps({**reading(0), "site": "y" * size * MIB}) for size in (2, 5, 7)]
    for value in dead:
        produce_large(bench, "raw", value)
    assert sorted(wait_for("all", lambda: len(c := numbers(reader)) >= 60 and c)) == list(range(60))
    assert [len(m.tuple["station"]) for m in reader.of("tuple")].count(890_001) == 10
    found = wait_for("the dead letters", lambda: len(d := letters(reader)) == 3 and d)
    assert [m.value for m in found] == dead
    edge.stop()


def test_readings_that_were_deleted_unread_are_counted(bench: Bench) -> None:
    bench.create(["raw"], 1)
    bench.publish(everything("air:raw/0"))
    reader = bench.reader(TOPIC, ACKS)
    config = "sources:\n  - {kind: kafka, name: k, stream: air, topic: raw}\n"
    edge = bench.edge("e", config).start()
    bench.produce("raw", ((0, orjson.dumps(reading(i))) for i in range(10)))
    wait_for("the first", lambda: len(numbers(reader)) == 10)
    edge.stop()
    bench.produce("raw", ((0, orjson.dumps(reading(i))) for i in range(10, 40)))
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    for done in admin.delete_records([TopicPartition("raw", 0, 25)]).values():
        done.result()
    edge.start()
    wait_for("the rest", lambda: sorted(numbers(reader)) == [*range(10), *range(25, 40)])
    assert edge.metric("tamis_edge_lost_readings_total", stream="air") == 15
    assert b"deleted readings" in edge.process.log.read_bytes()
    edge.stop()


def test_a_topic_that_was_deleted_and_created_again_is_read_from_its_first_offset(bench: Bench) -> None:
    bench.create(["raw"], 1)
    bench.publish(everything("air:raw/0"))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("e", "sources:\n  - {kind: kafka, name: k, stream: air, topic: raw}\n").start()
    bench.produce("raw", ((0, orjson.dumps(reading(i))) for i in range(10)))
    wait_for("the first", lambda: len(numbers(reader)) == 10)
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    admin.delete_topics(["raw"])["raw"].result()
    wait_for("the end of the topic", lambda: "raw" not in admin.list_topics(timeout=10).topics)
    bench.create(["raw"], 1)
    bench.produce("raw", ((0, orjson.dumps(reading(i))) for i in range(10, 13)))
    wait_for("the new ones", lambda: sorted(numbers(reader)) == list(range(13)))
    said = "its topic may have been deleted and created again; reading goes on at the first offset"
    (line,) = [line for line in edge.process.log.read_text().splitlines() if said in line]
    told = orjson.loads(line)
    assert (told["shard"], told["offset"], told["next"]) == ("air:raw/0", 10, 0)
    edge.stop()


def test_a_quiet_stream_follows_the_clock_again_after_the_broker_was_away(bench: Bench) -> None:
    bench.create(["raw"], 1)
    bench.publish(everything("air:raw/0", idle_timeout=1_000_000))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("e", "sources:\n  - {kind: kafka, name: k, stream: air, topic: raw}\n").start()

    def watermark() -> float:
        return edge.metric("tamis_edge_watermark_seconds")

    bench.produce("raw", [(0, orjson.dumps(reading(0)))])
    wait_for("the reading", lambda: numbers(reader) == [0])
    wait_for("the clock", lambda: watermark() > T0 / 1e6 + 1000)
    bench.broker.stop()
    wait_for("word of it", lambda: watermark() == wait_and(watermark))
    before = watermark()
    bench.broker.start()
    wait_for("the clock again", lambda: watermark() > before + 3)
    edge.stop()


def wait_and(look: Any, seconds: float = 2.5) -> Any:
    import time

    time.sleep(seconds)
    return look()

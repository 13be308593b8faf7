"""The edge as a process against a real Kafka: every kind of source, killed in mid-stream and cut off."""

from __future__ import annotations

import random
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from confluent_kafka import Message as KafkaMessage
from confluent_kafka import Producer
from tests.integration.edges import PARTITIONS, Bench, Message, Reader, everything, wait_for
from tests.unit.edge.plans import TOPIC, air, entry, plan, topic

from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import END_OF_TIME, Ack
from tamis.messaging.topics import ACKS, DEAD_LETTERS
from tamis.plan.model import Entry, Plan

T0 = 1_700_000_000_000_000


def reading(i: int, stations: int = 5) -> dict[str, Any]:
    return {"station": f"s{i % stations}", "ts": T0 + i * 1000, "temp": float(i % 50)}


def came(reader: Reader) -> Counter[int]:
    """How often each reading came, by its number."""
    return Counter((m.tuple["ts"] - T0) // 1000 for m in reader.of("tuple"))


def await_all(reader: Reader, n: int, seconds: float = 60.0) -> Counter[int]:
    found: Counter[int] = wait_for(f"{n} readings", lambda: len(c := came(reader)) >= n and c, seconds)
    assert sorted(found) == list(range(n))
    return found


def first_come_in_order(reader: Reader) -> bool:
    """True if the readings of each station came in their order, but for those that came again."""
    greatest: dict[str, int] = {}
    seen: set[int] = set()
    for m in reader.of("tuple"):
        station, ts = m.tuple["station"], m.tuple["ts"]
        if ts not in seen:
            if ts < greatest.get(station, 0):
                return False
            seen.add(ts)
            greatest[station] = ts
    return True


def timed(reader: Reader) -> list[Message]:
    """Progress that says a time; some only says up to which place all tuples were published."""
    return [m for m in reader.of("progress") if "event_time" in m.envelope]


# ---- signs of life


def test_an_edge_without_shards_reports_its_failing_source_until_it_has_a_shard(bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # it doesn't listen, and nobody else can
        nobody = closed.getsockname()[1]
        bench.publish(Plan(1, PARTITIONS))
        reader = bench.reader(TOPIC, ACKS)
        source = f"{{kind: mqtt, name: plant, host: 127.0.0.1, port: {nobody}, topic: 'plant/{{stream}}'}}"
        edge = bench.edge("lone", f"sources: [{{kind: http, name: http}}, {source}]").start()
        told = wait_for(
            "a failing source",
            lambda: [one.failing for one in reader.lives("lone") if "refused" in str(one.failing)],
        )
        bench.publish(everything("air:lone/http", version=2))
        edge.post("air", reading(0))
        acks = wait_for("a shard", lambda: [one for one in reader.acks() if one.shard == "air:lone/http"])
        assert acks[-1].failing == told[-1]
        edge.stop()


def test_a_topic_that_does_not_exist_is_named_and_read_once_somebody_creates_it(bench: Bench) -> None:
    bench.publish(everything("air:raw.late/0"))
    reader = bench.reader(TOPIC, ACKS)
    source = "{kind: kafka, name: k, topic: raw.late, stream: air}"
    edge = bench.edge("late", f"sources: [{source}]").start()
    wait_for(
        "the missing topic",
        lambda: [
            one.failing for one in reader.lives("late") if "topic raw.late doesn't exist" in str(one.failing)
        ],
    )
    AdminOf(bench.bootstrap).create("raw.late", 1)
    producer = Producer({"bootstrap.servers": bench.bootstrap})
    producer.produce("raw.late", orjson.dumps(reading(0)))
    assert producer.flush(10) == 0
    await_all(reader, 1)
    edge.stop()


# ---- HTTP


def test_what_http_accepted_survives_a_kill(bench: Bench) -> None:
    bench.publish(everything("air:h/http"))
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    edge = bench.edge("h").start()
    n = 0
    for round_ in range(3):
        for size in (1, 7, 40):
            batch = [reading(n + i) for i in range(size)]
            body = batch[0] if size == 1 else batch if size == 7 else b"\n".join(map(orjson.dumps, batch))
            answer = edge.post("air", body)
            assert (answer.status_code, answer.json()) == (202, {"accepted": size})
            n += size
        if round_ < 2:
            edge.kill()
            edge.start()
    await_all(reader, n)
    assert first_come_in_order(reader)
    one = min(reader.of("tuple"), key=lambda found: found.tuple["ts"])  # partitions come in any order
    assert one.tuple == {"station": "s0", "ts": T0, "temp": 0.0}
    assert one.envelope == {"shard": "air:h/http", "plan": 1, "activation": 0}
    assert one.key == b'["s0"]'
    acks = [ack for ack in reader.acks() if ack.shard == "air:h/http"]
    assert (acks[0].plan, acks[0].state) in ((0, "waiting"), (1, "active"))
    assert (acks[-1].plan, acks[-1].state, acks[-1].edge) == (1, "active", "h")
    wait_for("the journal is empty", lambda: edge.metric("tamis_edge_inbox_records") == 0)
    progress = wait_for("progress", lambda: {m.partition: m.envelope["event_time"] for m in timed(reader)})
    assert set(progress) == {0, 1}
    wait_for(
        "the last progress",
        lambda: max(m.envelope["event_time"] for m in timed(reader)) == T0 + (n - 1) * 1000,
    )
    newest = wait_for(
        "the counts",
        lambda: [
            ack for ack in reader.acks() if ack.shard == "air:h/http" and ack.watermark == T0 + (n - 1) * 1000
        ],
    )[-1]
    assert newest.tuples is not None and newest.tuples["published"] > 0
    assert set(newest.tuples) == {"published", "omitted", "filtered", "late", "dead", "aggregated"}
    edge.stop()


def test_a_shard_that_was_silent_comes_back_with_its_next_reading(bench: Bench) -> None:
    shard = "air:h/http"
    bench.publish(everything(shard))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("h").start()
    edge.post("air", [reading(0), reading(1)])
    await_all(reader, 2)

    def last() -> Ack:
        return [ack for ack in reader.acks() if ack.shard == shard][-1]

    quiet = wait_for("its source is silent", lambda: (ack := last()).quiet > 1_000_000 and ack)
    assert (quiet.state, quiet.plan) == ("active", 1)
    bench.publish(everything(version=2))  # it is declared gone
    waiting = wait_for("it waits", lambda: (ack := last()).state == "waiting" and ack)
    assert waiting.plan == 2 and waiting.quiet > quiet.quiet
    edge.post("air", [reading(2), reading(3)])
    assert waiting.unread is False
    wait_for("it has something", lambda: (ack := last()).state == "waiting" and ack.quiet == 0 and ack.unread)
    assert len(reader.of("tuple")) == 2  # and sends nothing before a plan lists it
    bench.publish(everything(shard, version=3))
    assert set(await_all(reader, 4).values()) == {1}
    edge.stop()


def test_http_says_what_it_does_not_take(bench: Bench) -> None:
    bench.publish(everything("air:h/http"))
    reader = bench.reader(TOPIC, DEAD_LETTERS)
    edge = bench.edge("h", "http: {body_limit: 2000000}\n").start()
    problems = [
        (edge.post("nope", {}), 404, "'nope' is not a stream of this edge; known: air"),
        (edge.post("air", b"{"), 400, "send a JSON object"),
        (edge.post("air", b"7"), 400, "neither object nor array"),
        (edge.post("air", b"a\nb\n"), 400, "none of its readings is JSON"),
        (edge.post("air", b" " * 2_000_001), 413, "the limit is 2000000 bytes"),
        (edge.post("air", {"station": "x" * 950_000}), 413, "the limit of one reading"),
    ]
    for answer, status, words in problems:
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status
        assert words in answer.json()["detail"]
    # A line that can't be parsed among good ones is a dead letter, not an error of them all.
    body = b"\n".join(
        [
            orjson.dumps(reading(0)),
            b"{broken",
            orjson.dumps({**reading(1), "temp": 99}),
            orjson.dumps(reading(1)),
        ]
    )
    assert edge.post("air", body).json() == {"accepted": 4}
    await_all(reader, 2)
    dead = wait_for(
        "dead letters", lambda: len(d := [m for m in reader.read() if m.topic == DEAD_LETTERS]) == 2 and d
    )
    assert dead[0].value == b"{broken"
    assert dead[0].headers["reason"] == "undecodable"
    assert dead[1].headers | {"error": ""} == {
        "service": "edge",
        "source.topic": "/v1/streams/air",
        "source.partition": "0",
        "source.offset": "2",
        "reason": "out_of_domain",
        "error": "",
        "edge": "h",
        "stream": "air",
    }
    assert edge.metric("tamis_dead_letters_total", reason="undecodable") == 1
    edge.stop()


# ---- files


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".csv":
        path.write_text(
            "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n"
        )
    elif path.suffix == ".ndjson":
        path.write_bytes(b"\n".join(map(orjson.dumps, rows)) + b"\n")
    else:
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet"])
def test_a_recording_is_replayed_to_its_end(bench: Bench, suffix: str) -> None:
    n = 20_000
    write(bench.directory / f"air{suffix}", [reading(i) for i in range(n)])
    config = f"sources:\n  - {{kind: file, name: f, stream: air, path: air{suffix}}}\n"
    bench.publish(everything("air:e/f"))
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    edge = bench.edge("e", config).start()
    finals = wait_for("final records", lambda: len(f := reader.of("final")) == PARTITIONS and f)
    assert {m.partition for m in finals} == {0, 1}
    await_all(reader, n)
    assert first_come_in_order(reader)
    for partition in range(PARTITIONS):
        progress, final = [m for m in reader.of("progress") + finals if m.partition == partition][-2:]
        assert (progress.kind, progress.envelope["event_time"], final.kind) == (
            "progress",
            END_OF_TIME,
            "final",
        )
        assert [m for m in reader.messages if (m.topic, m.partition) == (TOPIC, partition)][-2:] == [
            progress,
            final,
        ]
    wait_for("the final acknowledgement", lambda: reader.acks()[-1].state == "final")
    edge.stop()


def test_a_replay_goes_on_where_it_was_killed(bench: Bench) -> None:
    n = 3000
    write(bench.directory / "air.csv", [reading(i) for i in range(n)])
    config = "sources:\n  - {kind: file, name: f, stream: air, path: air.csv, speed: 1}\n"
    bench.publish(everything("air:e/f"))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("e", config).start()
    wait_for("some readings", lambda: len(came(reader)) > 800)
    edge.kill()
    before = len(came(reader))
    assert before < n
    edge.start()
    found = await_all(reader, n)
    assert sum(found.values()) < n + before  # it did not begin anew
    wait_for("final", lambda: len(reader.of("final")) == PARTITIONS)
    edge.stop()


def test_omission_keeps_what_every_window_needs(bench: Bench) -> None:
    r = random.Random(5)
    rows: list[dict[str, Any]] = []
    value = 20.0
    for i in range(20_000):
        value = min(max(value + r.gauss(0, 0.2), -50), 60)
        rows.append({"station": f"s{i % 4}", "ts": T0 + i * 250_000, "temp": round(value, 1)})
    write(bench.directory / "air.csv", rows)
    interval = 30_000_000
    bench.publish(plan(air([topic([entry(interval)])]), ["air:e/f"], 1, PARTITIONS))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("e", "sources:\n  - {kind: file, name: f, stream: air, path: air.csv}\n").start()
    wait_for("final", lambda: len(reader.of("final")) == PARTITIONS)
    retained = [m.tuple for m in reader.of("tuple")]
    assert len(retained) < len(rows) / 2
    for station in ("s0", "s3"):
        mine = [row for row in rows if row["station"] == station]
        kept = [row for row in retained if row["station"] == station]
        for start in range(0, len(mine) - 40, 7):
            low, high = mine[start]["ts"], mine[start]["ts"] + interval
            inside = [row["temp"] for row in mine[start : start + 40] if row["ts"] <= high]
            got = [row["temp"] for row in kept if low <= row["ts"] <= high]
            assert (max(got), min(got)) == (max(inside), min(inside))
    omitted = len(rows) - len(retained)
    wait_for("counts", lambda: edge.metric("tamis_edge_tuples_total", decision="published") == len(retained))
    wait_for(
        "counts",
        lambda: edge.metric("tamis_edge_tuples_total", decision="omitted") == omitted,
    )
    edge.stop()


# ---- Kafka


def test_partitions_of_a_killed_edge_move_and_nothing_is_lost(bench: Bench) -> None:
    bench.create(["raw"])
    bench.publish(everything("air:raw/0", "air:raw/1", delay=100_000_000))
    reader = bench.reader(TOPIC, ACKS)
    config = "sources:\n  - {kind: kafka, name: k, stream: air, topic: raw}\n"
    first, second = bench.edge("k1", config).start(), bench.edge("k2", config).start()

    def held_by() -> dict[str, str]:
        return {ack.shard: ack.edge for ack in reader.acks() if ack.state == "active"}

    wait_for("both shards", lambda: len(held_by()) == 2)
    n = 6000
    bench.produce("raw", ((i % 2, orjson.dumps(reading(i))) for i in range(n // 2)))
    wait_for("some readings", lambda: len(came(reader)) > 1000)
    killed = first if "k1" in held_by().values() else second
    killed.kill()
    bench.produce("raw", ((i % 2, orjson.dumps(reading(i))) for i in range(n // 2, n)))
    killed.start()
    await_all(reader, n, 60)
    assert {m.envelope["shard"] for m in reader.of("tuple")} == {"air:raw/0", "air:raw/1"}
    first.stop()
    wait_for(
        "all with the other",
        lambda: {a.shard: a.edge for a in reader.acks()} == {"air:raw/0": "k2", "air:raw/1": "k2"},
    )
    bench.produce("raw", ((i % 2, orjson.dumps(reading(i))) for i in range(n, n + 10)))
    await_all(reader, n + 10)
    second.stop()


def test_a_source_whose_topic_does_not_exist_says_so_and_reads_the_topic_once_it_exists(
    bench: Bench,
) -> None:
    bench.publish(everything("air:later/0"))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("k", "sources: [{kind: kafka, name: plant, stream: air, topic: later}]").start()
    (told, *_) = wait_for(
        "a failing source", lambda: [one.failing["plant"] for one in reader.lives("k") if one.failing]
    )
    assert told.startswith(
        f"Kafka at {bench.bootstrap}: topic later doesn't exist; create it: kafka-topics.sh"
    )
    bench.create(["later"], 1)
    bench.produce("later", [(0, orjson.dumps(reading(0)))])
    await_all(reader, 1)
    wait_for("no failing source", lambda: not reader.acks()[-1].failing)
    edge.stop()


# ---- Kafka away, and plans


@pytest.mark.parametrize("killed", [False, True])
def test_an_edge_that_is_cut_off_spools_and_drains(bench: Bench, killed: bool) -> None:
    bench.publish(everything("air:h/http"))
    edge = bench.edge("h").start()
    n = 0

    def post(size: int) -> None:
        nonlocal n
        assert edge.post("air", [reading(n + i) for i in range(size)]).status_code == 202
        n += size

    post(10)
    await_all(bench.reader(TOPIC), n)
    bench.broker.stop()
    for _ in range(18):
        post(50)
        time.sleep(0.5)
    assert wait_for("a spool", lambda: edge.metric("tamis_edge_spool_records")) > 0
    if killed:
        edge.kill()
        edge.process.start()
        wait_for("ready without Kafka", edge.process.is_ready)
        post(50)
    bench.broker.start()
    reader = bench.reader(TOPIC)
    await_all(reader, n)
    post(10)
    await_all(reader, n)
    # A kill loses what was on its way: it comes from the journal, behind what was spooled after it.
    assert killed or first_come_in_order(reader)
    wait_for("an empty spool", lambda: edge.metric("tamis_edge_spool_records") == 0)
    wait_for("an empty journal", lambda: edge.metric("tamis_edge_inbox_records") == 0)
    last = T0 + (n - 1) * 1000
    wait_for("progress", lambda: max(m.envelope["event_time"] for m in timed(reader)) == last)
    edge.stop()


@pytest.mark.parametrize("frozen", [False, True])
def test_it_stops_in_time_while_kafka_is_away(bench: Bench, frozen: bool) -> None:
    bench.create(["raw"])
    bench.publish(everything("air:h/http", "air:raw/0", "air:raw/1"))
    reader = bench.reader(TOPIC, ACKS)
    config = "sources:\n  - {kind: http, name: http}\n  - {kind: kafka, name: k, stream: air, topic: raw}\n"
    edge = bench.edge("h", config).start()
    wait_for("all shards", lambda: len({ack.shard for ack in reader.acks() if ack.state == "active"}) == 3)
    kafka = bench.broker._process
    assert kafka is not None
    if frozen:
        kafka.send_signal(signal.SIGSTOP)
    else:
        bench.broker.stop()
    try:
        assert edge.post("air", [reading(i) for i in range(20)]).status_code == 202
        edge.stop()
    finally:
        if frozen:
            kafka.send_signal(signal.SIGCONT)
        else:
            bench.broker.start()
    edge.start()
    await_all(reader, 20)
    edge.stop()


def test_a_plan_is_obeyed_without_a_restart(bench: Bench) -> None:
    old, new = entry(0), entry(0, 2)
    bench.publish(everything("air:h/http"))
    reader = bench.reader(TOPIC, ACKS)
    edge = bench.edge("h").start()
    edge.post("air", [reading(i) for i in range(10)])
    await_all(reader, 10)

    def of(entries: list[Entry], version: int, partitions: int = PARTITIONS) -> Plan:
        return plan(air([topic(entries)]), ["air:h/http"], version, partitions)

    bench.publish(of([old, new], 2))
    ack = wait_for("version 2", lambda: [a for a in reader.acks() if a.plan == 2])[0]
    assert ack.activation == T0 + 9 * 1000 + 1
    edge.post("air", [reading(i) for i in range(10, 20)])
    await_all(reader, 20)
    assert {(m.tuple["ts"] - T0) // 1000 for m in reader.of("tuple") if m.envelope["plan"] == 2} == set(
        range(10, 20)
    )
    assert {m.envelope["activation"] for m in reader.of("tuple")} == {0, ack.activation}

    # An older version, and one that doesn't fit the topics, are not obeyed.
    bench.publish(of([old], 1))
    bench.publish(of([new], 3, partitions=3), create=False)
    ready = wait_for("refusal", lambda: (r := httpx.get(f"{edge.telemetry}/readyz")).status_code == 503 and r)
    assert "plan 3: topic tamis.stream.air.1 has 2 partitions, the plan says 3" in ready.text
    edge.post("air", [reading(20)])
    await_all(reader, 21)
    assert edge.metric("tamis_plan_version") == 2

    # A plan without the shard stops it; a later one with it lets it go on from its commit.
    bench.publish(plan(air([topic([new])]), [], 4, PARTITIONS))
    wait_for("waiting", lambda: reader.acks()[-1].state == "waiting")
    edge.post("air", [reading(i) for i in range(21, 30)])
    bench.publish(of([new], 5))
    await_all(reader, 30)
    assert {m.envelope["plan"] for m in reader.of("tuple")} == {1, 2, 5}
    edge.stop()


def test_without_a_plan_readings_wait_on_disk(bench: Bench) -> None:
    edge = bench.edge("h")
    edge.process.start()
    wait_for("HTTP", lambda: _answers(edge.http))
    assert edge.post("air", [reading(i) for i in range(5)]).status_code == 202
    assert not edge.process.is_ready()
    edge.kill()
    bench.publish(everything("air:h/http"))
    reader = bench.reader(TOPIC)
    edge.start()
    await_all(reader, 5)
    edge.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 404
    except httpx.TransportError:
        return False


# ---- the partitioner


def test_keys_go_where_librdkafka_puts_them(kafka: str) -> None:
    broker = AdminOf(kafka)
    broker.create("edge-partitioner", 7)
    found: dict[bytes, int] = {}

    def delivered(error: object, message: KafkaMessage) -> None:
        assert error is None
        found[message.key() or b""] = message.partition() or 0

    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})
    r = random.Random(3)
    keys = {orjson.dumps(["é" * r.randint(0, 9) + str(r.random()), i]) for i in range(500)} | {b"[]"}
    for key in keys:
        producer.produce("edge-partitioner", b"", key, on_delivery=delivered)
    assert producer.flush(10) == 0
    assert found == {key: partition_of(key, 7) for key in keys}


class AdminOf:
    """Creates topics of the shared broker."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka.admin import AdminClient

        self._client = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, name: str, partitions: int) -> None:
        from confluent_kafka.cimpl import NewTopic

        for done in self._client.create_topics([NewTopic(name, partitions, 1)]).values():
            done.result()

"""Avro and Protobuf from the sources through the stream topics: the alarms are those of JSON.

The schema registry is away when the readings come, and nothing is lost for that.
"""

from __future__ import annotations

import datetime
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.text_format import Parse
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.unit.edge.decode.schema_values import message_types

from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.local.scrape import Scrape
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ALARMS, DEAD_LETTERS
from tamis.settings import KafkaSettings

SECONDS = 120.0
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
FORMATS = ("json", "avro", "protobuf")
SIDES = ("air", "surface")

SQL = "".join(
    f"""
CREATE STREAM {side}_{form} (station VARCHAR KEY, ts TIMESTAMP, x DOUBLE, n BIGINT,
  WATERMARK FOR ts AS ts) WITH (keys = 5, rate = '100/s', max_stall = '1 hour', value_format = '{form}');
"""
    for form in FORMATS
    for side in SIDES
) + "".join(
    f"""
CREATE ALERT warm_{form} AS SELECT a.station, a.ts, s.ts AS surface, a.x - s.x AS d, a.n
  FROM air_{form} a JOIN surface_{form} s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts + INTERVAL '2' SECOND
  WHERE a.x - s.x > 5;
"""
    for form in FORMATS
)
CONFIG = "name: edge\nsources:\n" + "".join(
    f"""  - {{kind: kafka, name: {side}-{form}, topic: raw.{side}.{form}, stream: {side}_{form},
     format: {form}, map: {{x: data.x}}}}
"""
    for form in FORMATS
    for side in SIDES
)

X = {"name": "x", "type": ["null", "double"]}
AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "station", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "data", "type": {"type": "record", "name": "Data", "fields": [X]}},
        {"name": "n", "type": "long"},
    ],
}  # fmt: skip
PROTOBUF = message_types(
    Parse(
        """
        name: "reading.proto" syntax: "proto3" dependency: "google/protobuf/timestamp.proto"
        dependency: "google/protobuf/wrappers.proto"
        message_type {
          name: "Reading"
          field { name: "station" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
          field { name: "ts" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
                  type_name: ".google.protobuf.Timestamp" }
          field { name: "data" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".Reading.Data" }
          field { name: "n" number: 4 label: LABEL_OPTIONAL type: TYPE_INT64 }
          nested_type {
            name: "Data"
            field { name: "x" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE
                    type_name: ".google.protobuf.DoubleValue" }
          }
        }
        """,
        FileDescriptorProto(),
    )
)["Reading"]


def until(what: Callable[[], Any], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


class Senders:
    """Writes the same readings in every format, by confluent-kafka's serializers."""

    def __init__(self, bootstrap: str, client: SchemaRegistryClient) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._avro = AvroSerializer(client, Schema(json.dumps(AVRO), "AVRO"))
        self._protobuf = ProtobufSerializer(PROTOBUF, client, {"use.deprecated.format": False})

    def values(self, side: str, row: dict[str, Any]) -> dict[str, bytes]:
        """A reading by the format."""
        seconds, micros = divmod(row["ts"], SECOND)
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        when = epoch + datetime.timedelta(microseconds=row["ts"])
        message = PROTOBUF(
            station=row["station"],
            ts={"seconds": seconds, "nanos": micros * 1000},
            data={} if row["x"] is None else {"x": {"value": row["x"]}},
            n=row["n"],
        )
        nested = {**row, "data": {"x": row["x"]}}
        contexts = {form: SerializationContext(f"raw.{side}.{form}", MessageField.VALUE) for form in FORMATS}
        avro, protobuf = (
            self._avro({**nested, "ts": when}, contexts["avro"]),
            self._protobuf(message, contexts["protobuf"]),
        )
        assert avro is not None and protobuf is not None
        return {"json": orjson.dumps(nested), "avro": avro, "protobuf": protobuf}

    def send(self, side: str, form: str, value: bytes) -> None:
        self._producer.produce(f"raw.{side}.{form}", value)

    def flush(self) -> None:
        assert self._producer.flush(20) == 0


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer("tamis", "hush") as server:
        yield server


def records(fleet: Fleet, topic: str) -> list[bytes]:
    config = KafkaSettings(bootstrap=fleet.bootstrap).client_config()
    with TopicReader(config, [topic]) as reader:
        return [record.value for record in reader.snapshot() if record.value is not None]


def alarms(fleet: Fleet) -> dict[str, Counter[bytes]]:
    """What each alert raised, each identity once, without what names the alert, its plan and the clock."""
    found: dict[str, dict[str, bytes]] = {form: {} for form in FORMATS}
    for value in records(fleet, ALARMS):
        alarm = orjson.loads(value)
        kept = {name: alarm[name] for name in ("key", "event_time", "row", "tuples")}
        found[alarm["alert"].removeprefix("warm_")][alarm["id"]] = orjson.dumps(
            kept, option=orjson.OPT_SORT_KEYS
        )
    return {form: Counter(by_id.values()) for form, by_id in found.items()}


def test_alarms_of_every_format_are_the_same(tmp_path: Path, registry: SchemaRegistryServer) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(CONFIG)
    environment = {
        "TAMIS_SCHEMA_REGISTRY_URL": registry.url,
        "TAMIS_SCHEMA_REGISTRY_USERNAME": "tamis",
        "TAMIS_SCHEMA_REGISTRY_PASSWORD": "hush",
    }
    spec = FleetSpec(tmp_path / "fleet", [EdgeSpec("edge", config)], partitions=2, environment=environment)
    fleet = Fleet(spec, lambda _: None)
    access = {"url": registry.url, "basic.auth.user.info": "tamis:hush"}
    try:
        with SchemaRegistryClient(access) as client:
            fleet.bootstrap = fleet.broker.start()
            admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
            raw = [NewTopic(f"raw.{side}.{form}", 1, 1) for side in SIDES for form in FORMATS]
            for made in admin.create_topics(raw).values():
                made.result()
            fleet.start({"formats.sql": SQL})
            senders = Senders(fleet.bootstrap, client)
            expected = feed(fleet, registry, senders)
            until(lambda: all(sum(one.values()) >= expected for one in alarms(fleet).values()))
            found = alarms(fleet)
            assert found["json"] == found["avro"] == found["protobuf"]
            assert sum(found["json"].values()) >= expected > 20
            letters = records(fleet, DEAD_LETTERS)
            assert sorted(letters) == [b"\0\0\0\x03\xe7no such schema", b'{"x": 1}']
            check_topic(fleet, client)
    finally:
        fleet.stop()
    for log in (tmp_path / "fleet").rglob("*.log"):
        assert b"hush" not in log.read_bytes()


def feed(fleet: Fleet, registry: SchemaRegistryServer, senders: Senders) -> int:
    """Send readings; returns a number of alarms that omission can't go below, one for each peak of air."""
    some = random.Random(14)
    peaks = 0
    made: list[tuple[str, dict[str, bytes]]] = []
    for i in range(150):
        station = f"k{some.randrange(3)}"
        for side in SIDES:
            x = some.choice([None, 0.1, -0.0, some.uniform(-3, 3)])
            at = START + i * SECOND // 2 + some.randrange(1000)
            row = {"station": station, "ts": at, "x": x, "n": some.getrandbits(62)}
            made.append((side, senders.values(side, row)))
        if i % 5 == 0:
            at = START + i * SECOND // 2 + 2000
            for side, x in (("air", 50.0 + i), ("surface", 0.0)):
                made.append((side, senders.values(side, {"station": station, "ts": at, "x": x, "n": i})))
            peaks += 1
    end = {"station": "end", "ts": START + 1000 * SECOND, "x": None, "n": 0}
    made += [(side, senders.values(side, end)) for side in SIDES]
    # The registry of schemas is away when readings come, and the edge says so.
    registry.away = True
    half = len(made) // 2
    for side, values in made[:half]:
        for form in FORMATS:
            senders.send(side, form, values[form])
    senders.flush()
    telemetry = fleet.telemetry["edge"]
    until(lambda: Scrape.of(telemetry).total("tamis_edge_source_up", source="air-avro") == 0)
    assert Scrape.of(telemetry).total("tamis_edge_source_up", source="air-json") == 1
    registry.away = False
    senders.send("air", "avro", b'{"x": 1}')
    senders.send("air", "protobuf", b"\0\0\0\x03\xe7no such schema")
    for side, values in made[half:]:
        for form in FORMATS:
            senders.send(side, form, values[form])
    senders.flush()
    return peaks


def check_topic(fleet: Fleet, client: SchemaRegistryClient) -> None:
    """A consumer outside the fleet reads the stream's topic with Confluent's deserializer."""
    (topic,) = [name for name in client.get_subjects() if name.startswith("tamis.stream.air_avro")]
    topic = topic.removesuffix("-value")
    read = AvroDeserializer(client)
    context = SerializationContext(topic, MessageField.VALUE)
    found = [read(value, context) for value in records(fleet, topic)]
    kinds = Counter(one["_"]["kind"] for one in found)
    assert kinds[None] > 20 and kinds["progress"] > 0
    assert {one["station"] for one in found if one["_"]["kind"] is None} >= {"k0", "k1", "k2"}

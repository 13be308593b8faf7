"""Avro and Protobuf from the sources through the stream topics: the alarms are those of JSON.

The schema registry is away when the readings come, and nothing is lost for that.
"""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.text_format import Parse
from tests.e2e.fed_fleet import until
from tests.e2e.one_fleet.conftest import PASSWORD, USER, OneFleet
from tests.unit.edge.decode.schema_values import message_types

from tamis.local.scrape import Scrape
from tamis.messaging.topics import DEAD_LETTERS

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
CONFIG = "name: formats\nsources:\n" + "".join(
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


def alarms(fed: OneFleet) -> dict[str, Counter[bytes]]:
    """What each alert raised, each identity once, without what names the alert, its plan and the clock."""
    found = fed.alarms()
    return {
        form: Counter(
            orjson.dumps(
                {name: alarm[name] for name in ("key", "event_time", "row", "tuples")},
                option=orjson.OPT_SORT_KEYS,
            )
            for alarm in found.get(f"warm_{form}", ())
        )
        for form in FORMATS
    }


def test_alarms_of_every_format_are_the_same(tmp_path: Path, one_fleet: OneFleet) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(CONFIG)
    one_fleet.create(*(f"raw.{side}.{form}" for side in SIDES for form in FORMATS), partitions=1)
    one_fleet.apply(SQL)
    before = Counter(one_fleet.records(DEAD_LETTERS))
    access = {"url": one_fleet.schemas.url, "basic.auth.user.info": f"{USER}:{PASSWORD}"}
    with SchemaRegistryClient(access) as client, one_fleet.edge("formats", config):
        senders = Senders(one_fleet.bootstrap, client)
        expected = feed(one_fleet, senders)
        until(lambda: all(sum(one.values()) >= expected for one in alarms(one_fleet).values()), SECONDS)
        found = alarms(one_fleet)
        assert found["json"] == found["avro"] == found["protobuf"]
        assert sum(found["json"].values()) >= expected > 20
        letters = Counter(one_fleet.records(DEAD_LETTERS)) - before
        assert sorted(letters.elements()) == [b"\0\0\0\x03\xe7no such schema", b'{"x": 1}']
        check_topic(one_fleet, client)
    for log in one_fleet.fleet.spec.directory.rglob("*.log"):
        assert PASSWORD.encode() not in log.read_bytes()


def feed(fed: OneFleet, senders: Senders) -> int:
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
    fed.schemas.away = True
    half = len(made) // 2
    for side, values in made[:half]:
        for form in FORMATS:
            senders.send(side, form, values[form])
    senders.flush()
    telemetry = fed.fleet.telemetry["formats"]
    until(lambda: Scrape.of(telemetry).total("tamis_edge_source_up", source="air-avro") == 0, SECONDS)
    assert Scrape.of(telemetry).total("tamis_edge_source_up", source="air-json") == 1
    fed.schemas.away = False
    senders.send("air", "avro", b'{"x": 1}')
    senders.send("air", "protobuf", b"\0\0\0\x03\xe7no such schema")
    for side, values in made[half:]:
        for form in FORMATS:
            senders.send(side, form, values[form])
    senders.flush()
    return peaks


def check_topic(fed: OneFleet, client: SchemaRegistryClient) -> None:
    """A consumer outside the fleet reads the stream's topic with Confluent's deserializer."""
    (topic,) = [name for name in client.get_subjects() if name.startswith("tamis.stream.air_avro")]
    topic = topic.removesuffix("-value")
    read = AvroDeserializer(client)
    context = SerializationContext(topic, MessageField.VALUE)
    found = [read(value, context) for value in fed.records(topic)]
    kinds = Counter(one["_"]["kind"] for one in found)
    assert kinds[None] > 20 and kinds["progress"] > 0
    assert {one["station"] for one in found if one["_"]["kind"] is None} >= {"k0", "k1", "k2"}

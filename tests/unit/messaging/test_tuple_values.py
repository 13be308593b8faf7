"""Values of stream topics in Avro and Protobuf, compared with confluent-kafka's deserializers and JSON."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.schema_registry import SchemaRegistryServer, Stored, incompatibilities

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import ENVELOPE, final_envelope, progress_envelope
from tamis.messaging.schemas.schema_texts import protobuf_file, schema_text
from tamis.messaging.schemas.tuple_decoding import SchemaMismatchError, decode, has_schema
from tamis.messaging.schemas.tuple_encoding import encode_alone, encode_envelope, encode_tuples
from tamis.messaging.schemas.tuple_schema import PROTOBUF_ENVELOPE, Layout, ValueSchema, check_names
from tamis.messaging.schemas.wire_format import KINDS, Format

TOPIC = "tamis.stream.air.1"
CONTEXT = SerializationContext(TOPIC, MessageField.VALUE)
COLUMNS: Layout = (
    ("station", Type.VARCHAR),
    ("ts", Type.TIMESTAMP),
    ("temp", Type.DOUBLE),
    ("n", Type.BIGINT),
    ("small", Type.INT),
    ("ok", Type.BOOLEAN),
    ("span", Type.INTERVAL),
)
FORMATS: list[Format] = ["avro", "protobuf"]
TUPLE = {"shard": "air:edge/mötes", "plan": 3, "activation": 1_690_000_000_000_000}
NOW = 1_700_000_000_000_000

WHOLE = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    "station": st.text(),
    "ts": st.integers(-(2**53), 2**53),
    "temp": st.floats(allow_nan=False, allow_infinity=False),
    "n": WHOLE,
    "small": WHOLE,
    "ok": st.booleans(),
    "span": WHOLE,
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | some for name, some in VALUES.items()}), max_size=6)


@pytest.fixture(scope="module")
def client() -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryServer() as server, SchemaRegistryClient({"url": server.url}) as found:
        yield found


def vectors(rows: list[dict[str, Any]], names: list[str]) -> dict[str, Vector]:
    kinds = dict(COLUMNS)
    return {name: Vector.from_list([row[name] for row in rows], kinds[name]) for name in names}


def bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bits(field) for name, field in value.items()}
    return struct.pack("<d", value) if isinstance(value, float) else value


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=150, deadline=None)
@given(
    rows=ROWS,
    late=st.booleans(),
    place=st.none() | st.integers(0, 2**53),
    hidden=st.sets(st.sampled_from(list(VALUES))),
)
def test_tuples_are_the_documents_of_json(
    form: Format, rows: list[dict[str, Any]], late: bool, place: int | None, hidden: set[str]
) -> None:
    """Every value bit by bit; a column that isn't in the projection is NULL."""
    schema = ValueSchema(form, 7, len(COLUMNS))
    envelope = TUPLE | ({"late": True} if late else {}) | ({} if place is None else {"place": place})
    shown = [name for name in VALUES if name not in hidden]
    starts = [encode_envelope(schema, envelope)] * len(rows)
    encoded = encode_tuples(schema, COLUMNS, vectors(rows, shown), starts)
    assert len(encoded) == len(rows)
    for row, value in zip(rows, encoded, strict=True):
        assert has_schema(value)
        expected = {name: None if name in hidden else row[name] for name in row}
        assert bits(decode(value, COLUMNS)) == bits({**expected, ENVELOPE: envelope})
        assert decode(value, None) == {ENVELOPE: envelope}


ALONE = [
    progress_envelope("air:e/s", 3, 17, NOW),
    progress_envelope("air:e/s", 3, -1, None),
    progress_envelope("air:e/s", 3, 17, None, (5, NOW)),
    progress_envelope("air:e/s", 3, 17, NOW, place=4),
    final_envelope("air:e/s", 2**60),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("envelope", ALONE)
def test_progress_and_final_records_are_told_apart(form: Format, envelope: dict[str, Any]) -> None:
    value = encode_alone(ValueSchema(form, 7, len(COLUMNS)), envelope)
    # JSON has arrays where Python has tuples.
    expected = orjson.loads(orjson.dumps(envelope))
    assert decode(value, None) == {ENVELOPE: expected}
    assert decode(value, COLUMNS) == {**dict.fromkeys(VALUES), ENVELOPE: expected}
    assert orjson.loads(encode_alone(None, envelope)) == {ENVELOPE: expected}


def test_a_consumer_reads_avro_with_confluents_deserializer(client: SchemaRegistryClient) -> None:
    number = client.register_schema(f"{TOPIC}-value", Schema(schema_text("air", COLUMNS, "avro"), "AVRO"))
    schema = ValueSchema("avro", number, len(COLUMNS))
    row = {"station": "k", "ts": NOW + 1, "temp": -0.0, "n": -(2**63), "small": 1, "ok": False, "span": None}
    (value,) = encode_tuples(schema, COLUMNS, vectors([row], list(row)), [encode_envelope(schema, TUPLE)])
    read = AvroDeserializer(client)
    found = read(value, CONTEXT)
    when = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=NOW + 1)
    assert found.pop("_") == {
        **TUPLE, "kind": None, "late": None, "event_time": None, "place": None, "shed": None
    }  # fmt: skip
    assert bits(found) == bits({**row, "ts": when})
    progress = read(encode_alone(schema, ALONE[2]), CONTEXT)
    assert (progress["_"]["kind"], progress["_"]["shed"], progress["station"]) == ("progress", [5, NOW], None)
    # And what its serializer writes is what we read.
    document = {**found, "_": TUPLE}
    written = AvroSerializer(client, schema_text("air", COLUMNS, "avro"))(document, CONTEXT)
    assert written == value


def test_a_consumer_reads_protobuf_with_confluents_deserializer(client: SchemaRegistryClient) -> None:
    topic = "tamis.stream.water.1"
    context = SerializationContext(topic, MessageField.VALUE)
    text = schema_text("water", COLUMNS, "protobuf")
    number = client.register_schema(f"{topic}-value", Schema(text, "PROTOBUF"))
    schema = ValueSchema("protobuf", number, len(COLUMNS))
    row = {"station": "k", "ts": NOW, "temp": -0.0, "n": -(2**63), "small": 1, "ok": False, "span": None}
    (value,) = encode_tuples(schema, COLUMNS, vectors([row], list(row)), [encode_envelope(schema, TUPLE)])
    pool = DescriptorPool()
    pool.AddSerializedFile(protobuf_file("water", COLUMNS))
    kind = GetMessageClass(pool.FindMessageTypeByName("tamis.stream.water.water"))
    message: Any = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client)(value, context)
    assert bits({name: getattr(message, name) for name in row if message.HasField(name)}) == bits(
        {name: field for name, field in row.items() if field is not None}
    )
    assert getattr(message, PROTOBUF_ENVELOPE).shard == TUPLE["shard"]
    conf = {"use.deprecated.format": False, "auto.register.schemas": False, "use.schema.id": number}
    assert ProtobufSerializer(kind, client, conf)(message, context) == value


@pytest.mark.parametrize("form", FORMATS)
def test_a_stream_with_more_columns_can_read_what_was_written_before(form: Format) -> None:
    old, new = (
        Stored(1, KINDS[form], schema_text("air", columns, form), ()) for columns in (COLUMNS[:3], COLUMNS)
    )
    assert not incompatibilities(old, new)
    assert not incompatibilities(new, old)
    other = (("station", Type.DOUBLE), *COLUMNS[1:])
    assert incompatibilities(old, Stored(1, KINDS[form], schema_text("air", other, form), ()))


@pytest.mark.parametrize("name", ["_", "a b", "größe", "1st", "?column?", PROTOBUF_ENVELOPE, ""])
def test_names_that_the_formats_dont_have_are_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="can't have the name"):
        check_names(((name, Type.DOUBLE),), "stream air")


@pytest.mark.parametrize("form", FORMATS)
def test_broken_values_are_named(form: Format) -> None:
    schema = ValueSchema(form, 7, len(COLUMNS))
    good = encode_alone(schema, ALONE[0])
    for value in (good[:-1] if form == "avro" else good[:-2], good[:5], b"\0", good + b"\xff"):
        with pytest.raises(SchemaMismatchError):
            decode(value, COLUMNS)


def test_a_negative_type_of_a_union_is_no_value() -> None:
    """fastavro would count the types of the union from the end."""
    value = encode_alone(ValueSchema("avro", 7, len(COLUMNS)), ALONE[0])
    assert decode(value, COLUMNS)[COLUMNS[-1][0]] is None
    for index in range(1, 65):
        wrong = value[:-1] + bytes([2 * index - 1])
        with pytest.raises(SchemaMismatchError, match=f"KeyError: -{index}"):
            decode(wrong, COLUMNS)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_arbitrary_bytes_dont_break_the_reader(noise: bytes) -> None:
    try:
        found = decode(b"\0\0\0\0\7" + noise, COLUMNS)
    except SchemaMismatchError:
        return
    assert isinstance(found[ENVELOPE], dict)


def test_whole_numbers_of_every_length() -> None:
    edges = sorted(
        {sign * (2**k + d) for k in range(63) for d in (-1, 0, 1) for sign in (1, -1)} | {-(2**63), 2**63 - 1}
    )
    columns: Layout = (("n", Type.BIGINT),)
    for form in FORMATS:
        schema = ValueSchema(form, 7, 1)
        starts = [encode_envelope(schema, TUPLE)] * len(edges)
        encoded = encode_tuples(schema, columns, {"n": Vector(np.array(edges, np.int64))}, starts)
        assert [decode(value, columns)["n"] for value in encoded] == edges

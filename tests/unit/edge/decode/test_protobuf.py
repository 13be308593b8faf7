"""Protobuf readings: what confluent-kafka's serializer writes comes out, and nothing else passes."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.text_format import Parse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.edge.decode.schema_values import NOW, Values, message_types, rows, served

from tamis.expressions.nodes import Type
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import WriterSchema
from tamis.messaging.schemas.wire_format import header
from tamis.plan.model import StreamColumn, StreamPlan
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.decode.schema_rows import SchemaRows
from tamis_edge.source_fields import FieldMap

# syntax = "proto3"; package plant;
FILE = Parse(
    """
    name: "plant.proto" package: "plant" syntax: "proto3"
    dependency: "google/protobuf/timestamp.proto"
    dependency: "google/protobuf/wrappers.proto"
    message_type {
      name: "Other"
      field { name: "x" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
    }
    message_type {
      name: "Reading"
      field { name: "station" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
      field { name: "at" number: 2
        label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" }
      field { name: "temp" number: 3
        label: LABEL_OPTIONAL type: TYPE_DOUBLE oneof_index: 0 proto3_optional: true }
      field { name: "n" number: 4 label: LABEL_OPTIONAL type: TYPE_SINT64 }
      field { name: "ok" number: 5 label: LABEL_OPTIONAL type: TYPE_BOOL }
      field { name: "box" number: 6
        label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" }
      field { name: "state" number: 7 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".plant.State" }
      field { name: "device" number: 8
        label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".plant.Reading.Device" }
      field { name: "tags" number: 9
        label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".plant.Reading.TagsEntry" }
      field { name: "list" number: 10 label: LABEL_REPEATED type: TYPE_DOUBLE }
      field { name: "raw" number: 11 label: LABEL_OPTIONAL type: TYPE_BYTES }
      field { name: "big" number: 12 label: LABEL_OPTIONAL type: TYPE_UINT64 }
      field { name: "small" number: 13 label: LABEL_OPTIONAL type: TYPE_FLOAT }
      field { name: "ticks" number: 14 label: LABEL_OPTIONAL type: TYPE_FIXED64 }
      nested_type {
        name: "Device"
        field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
        field { name: "temp" number: 2 label: LABEL_OPTIONAL type: TYPE_FLOAT }
      }
      nested_type {
        name: "TagsEntry"
        field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
        field { name: "value" number: 2
          label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".plant.Reading.Device" }
        options { map_entry: true }
      }
      oneof_decl { name: "_temp" }
    }
    enum_type {
      name: "State"
      value { name: "OFF" number: 0 }
      value { name: "ON" number: 1 }
    }
    """,
    FileDescriptorProto(),
)
TYPES = message_types(FILE)
NUMBERS = {"temp": Type.DOUBLE, "n": Type.BIGINT, "ok": Type.BOOLEAN}
SECONDS, NANOS = 1_714_564_800, 123_456_789


def reading(**fields: Any) -> Message:
    return TYPES["plant.Reading"](**fields)


def stream(**columns: Type) -> StreamPlan:
    """A stream without time whose columns may be NULL."""
    found = tuple(StreamColumn(name, kind, False, None) for name, kind in columns.items())
    return StreamPlan("s", found, None, 0, None, None, 0, ())


@pytest.fixture(scope="module")
def values() -> Iterator[Values]:
    yield from served()


def decode(values: Values, columns: dict[str, Type], *messages: Message, **options: Any) -> Decoded:
    payloads = values.protobuf(type(messages[0]), *messages)
    return values.decode(payloads, stream(**columns), "protobuf", **options)


def test_a_reading_comes_out_as_from_json(values: Values) -> None:
    columns = {"station": Type.VARCHAR, "at": Type.TIMESTAMP, **NUMBERS}
    full = reading(station="a", at={"seconds": SECONDS, "nanos": NANOS}, temp=20.5, n=-(2**63), ok=True)
    decoded = decode(values, columns, full, reading())
    assert not decoded.offences
    assert rows(decoded) == [
        {"station": "a", "at": SECONDS * 1_000_000 + 123_456, "temp": 20.5, "n": -(2**63), "ok": True},
        # A field without presence is never missing: proto3 doesn't tell it from its default.
        {"station": "", "at": None, "temp": None, "n": 0, "ok": False},
    ]


def test_times_before_1970_and_numbers_in_the_sources_unit(values: Values) -> None:
    message = reading(at={"seconds": -1, "nanos": 500_000_000}, ticks=SECONDS * 1000)
    decoded = decode(values, {"at": Type.TIMESTAMP, "ticks": Type.TIMESTAMP}, message, unit="ms")
    assert rows(decoded) == [{"at": -500_000, "ticks": SECONDS * 1_000_000}]


def test_wrappers_enums_nested_messages_and_maps(values: Values) -> None:
    columns = {"box": Type.DOUBLE, "state": Type.VARCHAR, "id": Type.VARCHAR, "t": Type.DOUBLE, "x": Type.INT}
    fields = {"id": "device.id", "t": "tags.left.temp", "x": "device.nothing.more"}
    full = reading(box={"value": 0.0}, state=1, device={"id": "k"}, tags={"left": {"temp": 1.5}})
    decoded = decode(values, columns, full, reading(), fields=fields)
    assert rows(decoded) == [
        {"box": 0.0, "state": "ON", "id": "k", "t": 1.5, "x": None},
        {"box": None, "state": "OFF", "id": None, "t": None, "x": None},
    ]


REFUSED = [
    ("list", Type.DOUBLE, {"list": [1.0]}, "a repeated field"),
    ("tags", Type.DOUBLE, {"tags": {"a": {}}}, "a map"),
    ("raw", Type.VARCHAR, {"raw": b"a"}, "a value of type bytes"),
    ("state", Type.VARCHAR, {"state": 9}, "the unknown enum value 9"),
    ("device", Type.VARCHAR, {"device": {}}, "a message plant.Reading.Device"),
    ("at", Type.BIGINT, {"at": {}}, "a message google.protobuf.Timestamp"),
    ("big", Type.BIGINT, {"big": 2**63}, "9223372036854775808"),
    ("station", Type.DOUBLE, {"station": "1"}, '"1"'),
    ("n", Type.VARCHAR, {"n": 1}, "1"),
]


@pytest.mark.parametrize(("name", "type_", "fields", "error"), REFUSED)
def test_a_value_of_another_type_is_refused(
    values: Values, name: str, type_: Type, fields: dict[str, Any], error: str
) -> None:
    (offence,) = decode(values, {name: type_}, reading(**fields)).offences
    assert offence.reason is Reason.WRONG_TYPE
    assert error in offence.error


def test_floats_that_are_no_numbers_are_refused(values: Values) -> None:
    (offence,) = decode(values, {"small": Type.DOUBLE}, reading(small=float("nan"))).offences
    assert offence.reason is Reason.NOT_A_NUMBER


def test_other_messages_of_the_file_are_found_by_their_indexes(values: Values) -> None:
    columns = {"x": Type.INT, "id": Type.VARCHAR}
    payloads = [
        *values.protobuf(TYPES["plant.Other"], TYPES["plant.Other"](x=7)),
        *values.protobuf(TYPES["plant.Reading.Device"], TYPES["plant.Reading.Device"](id="k")),
        *values.protobuf(TYPES["plant.Reading"], reading(station="a")),
    ]
    assert [payload[5:6] for payload in payloads] == [b"\0", b"\4", b"\2"]
    decoded = values.decode(payloads, stream(**columns), "protobuf")
    assert rows(decoded) == [{"x": 7, "id": None}, {"x": None, "id": "k"}, {"x": None, "id": None}]


def test_bytes_that_are_no_reading_are_named(values: Values) -> None:
    (good,) = values.protobuf(TYPES["plant.Reading"], reading(station="a"))
    number = int.from_bytes(good[1:5], "big")
    poison = [
        (b"{}", "wire format"),
        (header(number), "message indexes are incomplete"),
        (header(number) + b"\2", "message indexes are incomplete"),
        (header(number) + b"\2\x10", "has no message [8]"),
        (header(number) + b"\2\1", "has no message [-1]"),
        (header(number) + b"\1", "-1 message indexes"),
        (header(number) + b"\xff\xff\xff\xff\xff\xff", "too large"),
        (good[:-1], "schema"),
        (good[:7] + b"\x08\xff", "schema"),
        (good[:-1] + b"\xff", "schema"),
    ]
    for payload, error in poison:
        decoded = values.decode([good, payload, good], stream(station=Type.VARCHAR), "protobuf")
        (offence,) = decoded.offences
        assert (offence.row, offence.reason) == (1, Reason.UNDECODABLE)
        assert error in offence.error, payload
        assert decoded.rows.tolist() == [0, 2]


def test_a_file_that_another_file_needs_is_found(values: Values) -> None:
    shared = Parse(
        """name: "shared.proto" package: "shared" syntax: "proto3"
        message_type { name: "Place" field { name: "id" number: 1
          label: LABEL_OPTIONAL type: TYPE_STRING } }""",
        FileDescriptorProto(),
    )
    main = Parse(
        """name: "main.proto" package: "plant" syntax: "proto3" dependency: "shared.proto"
        message_type { name: "Sent"
          field { name: "place" number: 1
            label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".shared.Place" } }""",
        FileDescriptorProto(),
    )
    kind = message_types(main, shared)["plant.Sent"]
    decoded = decode(values, {"id": Type.VARCHAR}, kind(place={"id": "roof"}), fields={"id": "place.id"})
    assert rows(decoded) == [{"id": "roof"}]


@pytest.mark.parametrize("text", ["", "%", base64.b64encode(b"\xff").decode(), 'syntax = "proto3";'])
def test_a_schema_that_cant_be_used_is_named(text: str) -> None:
    schemas = {7: WriterSchema(7, "PROTOBUF", text)}
    found = Decoder(stream(x=Type.INT), FieldMap()).with_schemas([header(7) + b"\0"], schemas, NOW)
    (offence,) = found.offences
    assert offence.reason is Reason.UNDECODABLE
    assert "schema 7" in offence.error


SCHEMA = WriterSchema(7, "PROTOBUF", base64.b64encode(FILE.SerializeToString()).decode())


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "station": st.text(st.characters(exclude_categories=["Cs"])),
            "temp": st.floats(allow_nan=False, allow_infinity=False),
            "small": st.floats(width=32, allow_nan=False, allow_infinity=False),
            "n": st.integers(-(2**63), 2**63 - 1),
            "ok": st.booleans(),
        },
    )
)
def test_any_values_come_out_bit_by_bit(fields: dict[str, Any]) -> None:
    columns = {
        "station": Type.VARCHAR,
        "temp": Type.DOUBLE,
        "small": Type.DOUBLE,
        "n": Type.BIGINT,
        "ok": Type.BOOLEAN,
    }
    payload = header(7) + b"\2\2" + reading(**fields).SerializeToString()
    decoded = Decoder(stream(**columns), FieldMap()).with_schemas([payload], {7: SCHEMA}, NOW)
    defaults = {"station": "", "temp": None, "small": 0.0, "n": 0, "ok": False}
    (row,) = rows(decoded)
    assert bits(row) == bits(defaults | fields)


def bits(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: struct.pack("<d", value) if isinstance(value, float) else value for name, value in row.items()
    }


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_dead_letters_or_readings(noise: bytes) -> None:
    decoded = Decoder(stream(station=Type.VARCHAR), FieldMap()).with_schemas(
        [header(7) + noise], {7: SCHEMA}, NOW
    )
    assert len(decoded.rows) + len(decoded.offences) == 1


def test_compiled_schemas_are_bounded() -> None:
    from tamis_edge.decode.schema_rows import MOST_READERS

    found = SchemaRows([], 100)
    for number in range(MOST_READERS + 10):
        found.read([header(number) + b"\0"], {number: WriterSchema(number, "PROTOBUF", SCHEMA.text)})
    assert len(found._readers) == MOST_READERS

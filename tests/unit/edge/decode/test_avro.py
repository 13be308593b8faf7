"""Avro readings: what confluent-kafka's serializer writes comes out, and nothing else passes."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import struct
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.edge.decode.schema_values import NOW, Values, rows, served
from tests.unit.edge.plans import air, topic

from tamis.expressions.nodes import Type
from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import WriterSchema
from tamis.messaging.schemas.wire_format import header
from tamis.plan.model import StreamColumn, StreamPlan
from tamis_edge.decode.decoder import MAX_READING, Decoder
from tamis_edge.source_fields import FieldMap

STREAM = air([topic([])], columns=("station", "ts", "temp", "site", "n", "ok"), max_ahead=None)
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


@pytest.fixture(scope="module")
def values() -> Iterator[Values]:
    yield from served()


def record(*fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Reading",
        "namespace": "plant",
        "fields": [{"name": name, "type": kind, **more.get(name, {})} for name, kind in fields],
    }


def stream(*columns: tuple[str, Type]) -> StreamPlan:
    """A stream without time whose columns may be NULL."""
    found = tuple(StreamColumn(name, kind, False, None) for name, kind in columns)
    return StreamPlan("s", found, None, 0, None, None, 0, ())


READING = record(
    ("station", "string"), ("ts", MICROS), ("temp", ["null", "double"]), ("n", "int"), ("ok", "boolean")
)
GOOD = {"station": "a", "ts": NOW, "temp": 20.5, "n": 3, "ok": True}


def test_a_reading_comes_out_as_from_json(values: Values) -> None:
    decoded = values.decode(values.avro(READING, GOOD, {**GOOD, "temp": None}), STREAM)
    assert not decoded.offences
    assert rows(decoded) == [{**GOOD, "site": None}, {**GOOD, "site": None, "temp": None}]
    assert decoded.times.tolist() == [NOW, NOW]


def test_each_reading_is_read_by_its_own_schema(values: Values) -> None:
    """A batch across two versions of a schema, in any order."""
    later = record(
        ("n", "long"), ("ok", "boolean"), ("ts", {"type": "long", "logicalType": "timestamp-millis"}),
        ("station", ["string", "null"]), ("site", ["null", "string"]), ("temp", "float"),
        site={"default": None},
    )  # fmt: skip
    first = values.avro(READING, GOOD, GOOD)
    values.client.set_compatibility("readings-value", "NONE")
    second = values.avro(later, {**GOOD, "ts": NOW // 1000, "site": "roof", "temp": 20.5})
    decoded = values.decode([first[0], second[0], first[1]], STREAM)
    assert not decoded.offences
    assert [row["site"] for row in rows(decoded)] == [None, "roof", None]
    assert [row["temp"] for row in rows(decoded)] == [20.5, 20.5, 20.5]
    assert decoded.times.tolist() == [NOW, NOW // 1000 * 1000, NOW]


def test_paths_lead_through_records_maps_unions_and_former_names(values: Values) -> None:
    schema = record(
        ("device", record(("id", "string")) | {"name": "Device"}),
        (
            "data",
            ["null", record(("temperature", "double"), temperature={"aliases": ["temp"]}) | {"name": "Data"}],
        ),
        ("tags", {"type": "map", "values": ["null", "long"]}),
        ("again", ["null", "plant.Data"]),
    )
    wanted = stream(
        ("id", Type.VARCHAR), ("a", Type.DOUBLE), ("b", Type.DOUBLE), ("n", Type.BIGINT), ("x", Type.INT)
    )
    fields = {"id": "device.id", "a": "data.temp", "b": "again.temperature", "n": "tags.n", "x": "device.x.y"}
    payloads = values.avro(
        schema,
        {
            "device": {"id": "k"},
            "data": {"temperature": 1.5},
            "tags": {"n": 7},
            "again": {"temperature": 2.5},
        },
        {"device": {"id": "k"}, "data": None, "tags": {"m": 7}, "again": None},
    )
    decoded = values.decode(payloads, wanted, fields=fields)
    assert rows(decoded) == [
        {"id": "k", "a": 1.5, "b": 2.5, "n": 7, "x": None},
        {"id": "k", "a": None, "b": None, "n": None, "x": None},
    ]


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
WHEN = datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)
MICROSECONDS = (WHEN - EPOCH) // datetime.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, WHEN, MICROSECONDS),
        ({"type": "long", "logicalType": "timestamp-millis"}, WHEN, MICROSECONDS // 1000 * 1000),
        ({"type": "long", "logicalType": "timestamp-nanos"}, MICROSECONDS * 1000 + 999, MICROSECONDS),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, WHEN.replace(tzinfo=None), MICROSECONDS),
        ({"type": "int", "logicalType": "date"}, datetime.date(1970, 1, 3), 2 * 86_400_000_000),
        ("long", 1_714_564_800, 1_714_564_800_000_000),
        ("double", 1_714_564_800.25, 1_714_564_800_250_000),
        ("string", "2024-05-01T12:00:00.123456Z", MICROSECONDS),
        (["null", "string", MICROS], "2024-05-01T12:00:00.123456Z", MICROSECONDS),
    ],
)  # fmt: skip
def test_times(values: Values, kind: Any, value: Any, expected: int) -> None:
    """Numbers without a logical type are in the source's unit."""
    payloads = values_of(values, kind, value)
    decoded = values.decode(payloads, stream(("x", Type.TIMESTAMP)), unit="s")
    assert not decoded.offences
    assert rows(decoded) == [{"x": expected}]


def values_of(values: Values, kind: Any, *found: Any) -> list[bytes]:
    values.client.set_compatibility("readings-value", "NONE")
    return values.avro(record(("x", kind)), *({"x": one} for one in found))


def decimals(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


REFUSED = [
    ({"type": "long", "logicalType": "timestamp-micros"}, WHEN, Type.BIGINT, "a timestamp-micros"),
    ({"type": "int", "logicalType": "date"}, datetime.date(2024, 1, 1), Type.INT, "a date"),
    (decimals(20, 2), decimal.Decimal("21.35"), Type.BIGINT, "the decimal 21.35"),
    (decimals(20, 2), decimal.Decimal("21.35"), Type.VARCHAR, "the decimal 21.35"),
    (decimals(20, 18), decimal.Decimal("1.234567890123456789"), Type.DOUBLE, "which isn't exact"),
    (decimals(60, 2), decimal.Decimal(10) ** 55, Type.DOUBLE, "a decimal of"),
    ("bytes", b"abc", Type.VARCHAR, "a value of type bytes"),
    ({"type": "array", "items": "int"}, [1], Type.INT, "[1]"),
    ({"type": "map", "values": "int"}, {"a": 1}, Type.INT, '{"a":1}'),
    ("string", "7", Type.INT, '"7"'),
    ("int", 7, Type.VARCHAR, "7"),
    ("int", 1, Type.BOOLEAN, "1"),
    ([{"type": "int", "logicalType": "date"}, "long"], 7, Type.TIMESTAMP, "a union of int date and number"),
]


@pytest.mark.parametrize(("kind", "value", "type_", "error"), REFUSED)
def test_a_value_of_another_type_is_refused(
    values: Values, kind: Any, value: Any, type_: Type, error: str
) -> None:
    decoded = values.decode(values_of(values, kind, value), stream(("x", type_)))
    (offence,) = decoded.offences
    assert offence.reason is Reason.WRONG_TYPE
    assert offence.error.startswith("x: ")
    assert error in offence.error


def test_floats_that_are_no_numbers_are_refused(values: Values) -> None:
    decoded = values.decode(values_of(values, "double", math.nan, math.inf, 1.0), stream(("x", Type.DOUBLE)))
    assert [offence.reason for offence in decoded.offences] == [Reason.NOT_A_NUMBER] * 2
    assert rows(decoded) == [{"x": 1.0}]


@pytest.mark.parametrize(
    ("text", "type_"),
    [("21.35", Type.DOUBLE), ("-0.07", Type.DOUBLE), ("-5.00", Type.BIGINT), ("7", Type.INT)],
)
def test_a_decimal_is_exact(values: Values, text: str, type_: Type) -> None:
    for kind in (decimals(20, 2), {**decimals(20, 2), "type": "fixed", "name": "D", "size": 9}):
        decoded = values.decode(values_of(values, kind, decimal.Decimal(text)), stream(("x", type_)))
        (row,) = rows(decoded)
        assert decimal.Decimal(repr(row["x"])) == decimal.Decimal(text)


def test_enums_are_texts_and_unknown_logical_types_count_as_their_type(values: Values) -> None:
    kind = {"type": "enum", "name": "State", "symbols": ["on", "off"]}
    assert rows(values.decode(values_of(values, kind, "off"), stream(("x", Type.VARCHAR)))) == [{"x": "off"}]
    kind = {"type": "int", "logicalType": "time-millis"}
    found = values.decode(values_of(values, kind, datetime.time(0, 0, 1)), stream(("x", Type.INT)))
    assert rows(found) == [{"x": 1000}]


def test_missing_fields_and_checks_are_those_of_json(values: Values) -> None:
    schema = record(("station", "string"), ("ts", ["null", MICROS]), ("temp", "double"), ("ok", "boolean"))
    decoded = values.decode(
        values.avro(schema, {**GOOD, "ts": None}, {**GOOD, "temp": 70.5}, GOOD) + values_of(values, "int", 1),
        STREAM,
    )
    assert [(offence.row, offence.reason) for offence in decoded.offences] == [
        (0, Reason.MISSING_FIELD),
        (1, Reason.OUT_OF_DOMAIN),
        (3, Reason.MISSING_FIELD),
    ]
    assert decoded.rows.tolist() == [2]


def test_bytes_that_are_no_reading_are_named(values: Values) -> None:
    (good,) = values.avro(READING, GOOD)
    number = int.from_bytes(good[1:5], "big")
    poison = [
        (b"", "wire format"),
        (b"{}", "wire format"),
        (b'{"station": "a"}', "wire format"),
        (b"\0\0\0", "wire format"),
        (b"\1" + good[1:], "wire format"),
        (header(999), "has no schema 999"),
        (good[:-1], f"schema {number}"),
        (good + b"\0", "1 bytes are left"),
        (header(number), f"schema {number}"),
        (header(number) + b"\xff" * 12, f"schema {number}"),
        (header(number) + b"\1" + good[6:], f"schema {number}"),
        (header(number) + b"\0" * (MAX_READING + 1), "the limit is"),
    ]
    for payload, error in poison:
        decoded = values.decode([good, payload, good], STREAM)
        (offence,) = decoded.offences
        assert error in offence.error, payload
        assert offence.row == 1
        assert decoded.rows.tolist() == [0, 2]
        if "999" in error:
            assert offence.reason is Reason.UNKNOWN_SCHEMA


MODE = {"type": "enum", "name": "Mode", "symbols": ["off", "on", "fault"]}


def test_an_index_out_of_range_is_no_reading(values: Values) -> None:
    """A negative one would be a symbol, or a type of a union, counted from the end."""
    of = stream(("mode", Type.VARCHAR), ("last", Type.VARCHAR), ("temp", Type.DOUBLE), ("all", Type.VARCHAR))
    schema = record(
        *(("mode", MODE), ("last", ["null", "plant.Mode"]), ("temp", ["double", "null"])),
        ("modes", {"type": "array", "items": "plant.Mode"}),
    )
    row = {"mode": "on", "last": "fault", "temp": 20.5, "modes": ["off"]}
    (good,) = values.avro(schema, row)
    head, eight = good[:5], struct.pack("<d", 20.5)
    assert good == head + b"\2" + b"\2\4" + b"\0" + eight + b"\2\0\0"

    def value(mode: int, union: int, last: int, temp: int, listed: int) -> bytes:
        parts = [zigzag(mode), zigzag(union), zigzag(last) if union else b"", zigzag(temp), eight]
        return head + b"".join((*parts, b"\2", zigzag(listed), b"\0"))

    assert value(1, 1, 2, 0, 0) == good
    for index in (*range(-7, 0), *range(3, 8)):
        # The schema has three symbols, and unions of two types.
        for wrong in (
            value(index, 1, 2, 0, 0),
            value(1, index, 2, 0, 0),
            value(1, 1, index, 0, 0),
            value(1, 1, 2, index, 0),
            value(1, 1, 2, 0, index),
        ):
            decoded = values.decode([good, wrong, good], of)
            (offence,) = decoded.offences
            assert offence.row == 1 and "no member with the index in the value" in offence.error, wrong
            assert decoded.rows.tolist() == [0, 2]
    (mode, last, temp, _) = rows(values.decode([good], of))[0].values()
    assert (mode, last, temp) == ("on", "fault", 20.5)


def zigzag(number: int) -> bytes:
    """A small number as Avro writes it."""
    return bytes([2 * number if number >= 0 else -2 * number - 1])


NESTING = record(("next", ["null", "plant.Reading"]))
EMPTY = record(("b", "null")) | {"name": "Empty"}
WRONG = [
    ('{"type": "record"', "not an Avro schema"),
    ('{"type": "record", "name": "x", "fields": [{"name": "a", "type": "y"}]}', "not an Avro schema"),
    ('"int"', "must be a record"),
    ('["null", {"type": "record", "name": "x", "fields": []}]', "must be a record"),
    (json.dumps(NESTING), "contains itself"),
    (json.dumps(record(("a", {"type": "array", "items": "null"}))), "without bytes"),
    (
        json.dumps(record(("a", {"type": "array", "items": EMPTY}))),
        "without bytes",
    ),
    (json.dumps(record(("a", {"type": "array", "items": "plant.Reading"}))), "contains itself"),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_a_schema_that_cant_be_used_is_named(text: str, error: str) -> None:
    found = Decoder(STREAM, FieldMap()).with_schemas(
        [header(7) + b"\0"], {7: WriterSchema(7, "AVRO", text)}, NOW
    )
    (offence,) = found.offences
    assert offence.reason is Reason.UNDECODABLE
    assert error in offence.error
    assert "schema 7" in offence.error


def test_a_schema_of_another_format_is_named(values: Values) -> None:
    (payload,) = values.avro(READING, GOOD)
    (offence,) = values.decode([payload], STREAM, "protobuf").offences
    assert "is AVRO, and the source's format is protobuf" in offence.error


def test_types_of_other_subjects_are_found(values: Values) -> None:
    shared = {
        "type": "record",
        "name": "Place",
        "namespace": "shared",
        "fields": [{"name": "id", "type": "string"}],
    }
    values.client.register_schema("places-value", Schema(json.dumps(shared), "AVRO"))
    schema = record(("place", "shared.Place"), ("t", "double"))
    values.client.set_compatibility("readings-value", "NONE")
    payloads = values.avro(
        schema,
        {"place": {"id": "roof"}, "t": 1.0},
        references=[SchemaReference("shared.Place", "places-value", 1)],
    )
    wanted = stream(("id", Type.VARCHAR), ("t", Type.DOUBLE))
    assert rows(values.decode(payloads, wanted, fields={"id": "place.id"})) == [{"id": "roof", "t": 1.0}]


TYPES: dict[Type, list[tuple[Any, st.SearchStrategy[Any]]]] = {
    Type.VARCHAR: [("string", st.text())],
    Type.BOOLEAN: [("boolean", st.booleans())],
    Type.INT: [("int", st.integers(-(2**31), 2**31 - 1))],
    Type.BIGINT: [("long", st.integers(-(2**63), 2**63 - 1))],
    Type.DOUBLE: [
        ("double", st.floats(allow_nan=False, allow_infinity=False)),
        ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ],
    Type.TIMESTAMP: [
        (MICROS, st.integers(-(2**52), 2**52)),
        ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(2**42), 2**42)),
    ],
}


@st.composite
def drawn(draw: st.DrawFn) -> tuple[StreamPlan, Any, list[dict[str, Any]]]:
    """A stream, a schema whose fields are its columns in another order, and values."""
    kinds = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6))
    names = [f"c{i}" for i in range(len(kinds))]
    fields, made = [], []
    for name, kind in zip(names, kinds, strict=True):
        avro, some = draw(st.sampled_from(TYPES[kind]))
        form = draw(st.sampled_from(("plain", "first", "last")))
        optional = {"plain": avro, "first": ["null", avro], "last": [avro, "null"]}[form]
        fields.append((name, optional))
        made.append(some if form == "plain" else st.none() | some)
    order = draw(st.permutations(range(len(names))))
    schema = record(*(fields[i] for i in order), ("extra", "string"))
    row = st.fixed_dictionaries({**dict(zip(names, made, strict=True)), "extra": st.text()})
    return stream(*zip(names, kinds, strict=True)), schema, draw(st.lists(row, max_size=5))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn())
def test_any_values_of_any_schema_come_out_bit_by_bit(
    case: tuple[StreamPlan, Any, list[dict[str, Any]]],
) -> None:
    wanted, schema, found = case
    parsed = fastavro.parse_schema(schema)
    payloads = []
    for row in found:
        data = BytesIO()
        fastavro.schemaless_writer(data, parsed, row)
        payloads.append(header(7) + data.getvalue())
    text = json.dumps(schema)
    decoded = Decoder(wanted, FieldMap()).with_schemas(payloads, {7: WriterSchema(7, "AVRO", text)}, NOW)
    assert not decoded.offences
    millis = {f["name"] for f in schema["fields"] if "millis" in str(f["type"])}
    expected = [
        {c.name: scaled(row[c.name], 1000 if c.name in millis else 1) for c in wanted.columns}
        for row in found
    ]
    assert bits(rows(decoded)) == bits(expected)


def scaled(value: Any, factor: int) -> Any:
    return value if value is None or factor == 1 else value * factor


def bits(found: list[dict[str, Any]]) -> list[Any]:
    return [
        {name: struct.pack("<d", v) if isinstance(v, float) else v for name, v in row.items()}
        for row in found
    ]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_dead_letters_or_readings(noise: bytes) -> None:
    schemas = {7: WriterSchema(7, "AVRO", json.dumps(READING))}
    decoded = Decoder(STREAM, FieldMap()).with_schemas([header(7) + noise], schemas, NOW)
    assert len(decoded.rows) + len(decoded.offences) == 1


def test_nested_values_are_read_in_small_slices(values: Values) -> None:
    """Their objects would take a hundred times the memory of the payloads."""
    items = {
        "type": "array",
        "items": {"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean"}]},
    }
    sent = values_of(values, items, *[[{"a": True}] * 20_000] * 40)
    tracemalloc.start()
    decoded = values.decode(sent, stream(("x", Type.DOUBLE)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [one.reason for one in decoded.offences] == [Reason.WRONG_TYPE] * 40
    assert decoded.offences[0].error.startswith('x: [{"a":true},')
    assert most < 50e6

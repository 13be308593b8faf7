"""Schemas of stream topics in the languages of Avro and Protobuf, as a schema registry takes them."""

from __future__ import annotations

import base64
import json
from typing import Any

from tamis.expressions.nodes import Type
from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.tuple_schema import ENVELOPE_FIELDS, PROTOBUF_ENVELOPE, PROTOBUF_TYPE, Layout
from tamis.messaging.schemas.wire_format import Format

PACKAGE = "tamis.stream"


def schema_text(name: str, columns: Layout, form: Format) -> str:
    """The schema of a stream as a registry takes it: JSON, or a file descriptor in base64."""
    if form == "avro":
        return json.dumps(_avro(name, columns), separators=(",", ":"))
    return base64.b64encode(protobuf_file(name, columns)).decode()


_AVRO: dict[Type, Any] = {
    Type.VARCHAR: "string",
    Type.BOOLEAN: "boolean",
    Type.INT: "long",
    Type.BIGINT: "long",
    Type.DOUBLE: "double",
    Type.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    Type.INTERVAL: "long",
}
_AVRO_ENVELOPE = {"kind": "string", "late": "boolean", "shed": {"type": "array", "items": "long"}}


def _avro(name: str, columns: Layout) -> dict[str, Any]:
    optional = [
        {"name": field, "type": ["null", _AVRO_ENVELOPE.get(field, "long")], "default": None}
        for field in ENVELOPE_FIELDS
    ]
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [{"name": "plan", "type": "long"}, {"name": "shard", "type": "string"}, *optional],
    }
    values = [{"name": column, "type": ["null", _AVRO[kind]], "default": None} for column, kind in columns]
    return {
        "type": "record",
        "name": name,
        "namespace": PACKAGE,
        "fields": [{"name": ENVELOPE, "type": envelope}, *values],
    }


def protobuf_file(name: str, columns: Layout) -> bytes:
    """The serialized descriptor of a file with one message, the stream's. Its envelope has the number 1."""
    # Protobuf is loaded only where a stream uses it.
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    types = {
        Type.VARCHAR: FieldDescriptorProto.TYPE_STRING,
        Type.BOOLEAN: FieldDescriptorProto.TYPE_BOOL,
        Type.DOUBLE: FieldDescriptorProto.TYPE_DOUBLE,
    }
    whole, optional = FieldDescriptorProto.TYPE_SINT64, FieldDescriptorProto.LABEL_OPTIONAL
    # In proto2 every field can be absent.
    file = FileDescriptorProto(name=f"{PACKAGE}.{name}.proto", package=f"{PACKAGE}.{name}", syntax="proto2")
    message = file.message_type.add(name=name)
    inner = message.nested_type.add(name=PROTOBUF_TYPE)
    kinds = {"shard": Type.VARCHAR, "kind": Type.VARCHAR, "late": Type.BOOLEAN}
    for number, field in enumerate(("plan", "shard", *ENVELOPE_FIELDS), 1):
        type_ = types.get(kinds.get(field, Type.BIGINT), whole)
        label = FieldDescriptorProto.LABEL_REPEATED if field == "shed" else optional
        inner.field.add(name=field, number=number, type=type_, label=label)
    message.field.add(
        name=PROTOBUF_ENVELOPE,
        number=1,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{PACKAGE}.{name}.{name}.{PROTOBUF_TYPE}",
        label=optional,
    )
    for number, (column, kind) in enumerate(columns, 2):
        message.field.add(name=column, number=number, type=types.get(kind, whole), label=optional)
    return file.SerializeToString(deterministic=True)

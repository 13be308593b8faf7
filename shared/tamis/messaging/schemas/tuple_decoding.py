"""Values of stream topics in Avro and Protobuf to the documents that they are in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.schema_texts import PACKAGE, protobuf_file, schema_text
from tamis.messaging.schemas.tuple_schema import ENVELOPE_FIELDS, PROTOBUF_ENVELOPE, Layout
from tamis.messaging.schemas.wire_format import HEADER, refuse_negative_indexes

Document = dict[str, Any]
ReadEnvelope = Callable[[bytes], tuple[Document, int]]
ReadColumns = Callable[[bytes, int], Document]

MOST_ENVELOPES = 8  # that a reader knows: as many shards can take turns in a partition


class SchemaMismatchError(Exception):
    """The reason why a value doesn't match the schema of its topic."""


_NAME = "tuple"
# Avro begins with the plan's version, which is at least 1, Protobuf with its message indexes, which are 0.
_FIRST_MESSAGE = 0
_ENVELOPE_TAG = 0x0A  # field 1, with a length


def has_schema(value: bytes) -> bool:
    """True if a value of a stream topic isn't JSON."""
    return value[:1] == b"\0"


def decode(value: bytes, columns: Layout | None) -> Document:
    """The document of a value with a schema. `columns`: of the topic's schema; without them the document has
    only its envelope.

    Raises SchemaMismatchError if the value doesn't match the schema.
    """
    if len(value) <= HEADER:
        raise SchemaMismatchError("the value is incomplete")
    reader = (_protobuf if value[HEADER] == _FIRST_MESSAGE else _avro)(columns)
    try:
        return reader.read(value)
    # Bytes from outside, and fastavro raises errors of many kinds.
    except Exception as error:
        what = f"doesn't match the schema of its topic: {type(error).__name__}: {error!s:.200}"
        raise SchemaMismatchError(what) from None


class _Reader:
    """Reads the values of one schema. An envelope is read once for all values that begin with its bytes."""

    def __init__(self, read_envelope: ReadEnvelope, read_columns: ReadColumns | None) -> None:
        """Without `read_columns` a value is read as far as its envelope goes."""
        self._read_envelope, self._read_columns = read_envelope, read_columns
        self._known: list[tuple[bytes, Document]] = []

    def read(self, value: bytes) -> Document:
        """The document of one value."""
        known = self._known
        found = next((one for one in known if value.startswith(one[0])), None)
        if found is None:
            envelope, end = self._read_envelope(value)
            found = value[:end], envelope
            known.insert(0, found)
            del known[MOST_ENVELOPES:]
        elif found is not known[0]:
            known.remove(found)
            known.insert(0, found)
        beginning, envelope = found
        document = {} if self._read_columns is None else self._read_columns(value, len(beginning))
        document[ENVELOPE] = envelope.copy()
        return document


@lru_cache(maxsize=1_000)
def _avro(columns: Layout | None) -> _Reader:
    # Libraries are loaded only where a stream uses their format.
    from fastavro import parse_schema, schemaless_reader

    def strict(schema: Any) -> Any:
        named: dict[str, Any] = {}
        return refuse_negative_indexes(parse_schema(schema, named_schemas=named), named)

    # Times stay numbers.
    text = schema_text(_NAME, columns or (), "avro").replace(',"logicalType":"timestamp-micros"', "")
    whole = json.loads(text)
    first, *others = whole["fields"]
    outer, inner = map(strict, (first["type"], whole | {"fields": others}))

    def read_envelope(value: bytes) -> tuple[Document, int]:
        data = BytesIO(value)
        data.seek(HEADER)
        found: Any = schemaless_reader(data, outer, None)
        return {name: field for name, field in found.items() if field is not None}, data.tell()

    def read_columns(value: bytes, start: int) -> Document:
        data = BytesIO(value)
        data.seek(start)
        found: Any = schemaless_reader(data, inner, None)
        if data.tell() != len(value):
            raise ValueError(f"{len(value) - data.tell()} bytes are left behind the record")
        document: Document = found
        return document

    return _Reader(read_envelope, None if columns is None else read_columns)


@lru_cache(maxsize=1_000)
def _protobuf(columns: Layout | None) -> _Reader:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    pool = DescriptorPool()
    pool.AddSerializedFile(protobuf_file(_NAME, columns or ()))
    kind = GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{_NAME}.{_NAME}"))
    names = [name for name, _ in columns or ()]

    def read_envelope(value: bytes) -> tuple[Document, int]:
        message: Any = kind.FromString(value[HEADER + 1 :])
        inner = getattr(message, PROTOBUF_ENVELOPE)
        envelope = {
            name: getattr(inner, name)
            for name in ("plan", "shard", *ENVELOPE_FIELDS[:-1])
            if inner.HasField(name)
        }
        if inner.shed:
            envelope["shed"] = list(inner.shed)
        return envelope, _end_of_field(value, HEADER + 1)

    def read_columns(value: bytes, start: int) -> Document:
        # Without its first field the message is one, too.
        message: Any = kind.FromString(value[start:])
        return {name: getattr(message, name) if message.HasField(name) else None for name in names}

    return _Reader(read_envelope, None if columns is None else read_columns)


def _end_of_field(value: bytes, start: int) -> int:
    """The end of the field of the envelope, which begins at `start`."""
    if value[start] != _ENVELOPE_TAG:
        raise ValueError("the value doesn't begin with an envelope")
    length = shift = 0
    at = start + 1
    while True:
        byte = value[at]
        at += 1
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return at + length

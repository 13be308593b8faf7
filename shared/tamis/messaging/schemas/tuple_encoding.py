"""Values of stream topics in Avro and Protobuf, encoded column by column.

Both formats write whole numbers as zigzag varints and doubles as eight bytes. They differ in how they mark a
value that is there: Avro by the byte 2 (the second type of a union with null), Protobuf by the number of the
field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.tuple_schema import ENVELOPE_FIELDS, Layout, ValueSchema
from tamis.messaging.schemas.wire_format import header

_NULL, _THERE = b"\0", b"\2"  # in Avro
_VARINT, _EIGHT_BYTES, _LENGTH = 0, 1, 2  # wire types of Protobuf
_LONGEST_VARINT = 10


def encode_envelope(schema: ValueSchema, envelope: Mapping[str, Any]) -> bytes:
    """The beginning of a value: the header and the envelope, given as it is in JSON."""
    if schema.format == "avro":
        fields = [_varint(_zigzag(envelope["plan"])), _avro_text(envelope["shard"])]
        for name in ENVELOPE_FIELDS:
            value = envelope.get(name)
            fields.append(_NULL if value is None else _THERE + _avro_field(value))
        return header(schema.number) + b"".join(fields)
    fields = []
    for number, name in enumerate(("plan", "shard", *ENVELOPE_FIELDS), 1):
        value = envelope.get(name)
        if value is not None:
            fields += [_protobuf_field(number, one) for one in (value if name == "shed" else (value,))]
    inner = b"".join(fields)
    return header(schema.number) + b"\0" + _tag(1, _LENGTH) + _varint(len(inner)) + inner


def encode_alone(schema: ValueSchema | None, envelope: Mapping[str, Any]) -> bytes:
    """A value that has only an envelope: progress, or a final record. Its columns are all NULL. Without a
    schema it is JSON.
    """
    if schema is None:
        return orjson.dumps({ENVELOPE: envelope})
    columns = _NULL * schema.columns if schema.format == "avro" else b""
    return encode_envelope(schema, envelope) + columns


def encode_tuples(
    schema: ValueSchema, columns: Layout, values: Mapping[str, Vector], envelopes: Sequence[bytes]
) -> list[bytes]:
    """The values of tuples, one for each envelope. Columns that `values` doesn't have are NULL."""
    parts: list[Iterable[bytes]] = [envelopes]
    avro = schema.format == "avro"
    for number, (name, kind) in enumerate(columns, 2):
        vector = values.get(name)
        if vector is None:
            if avro:
                parts.append(repeat(_NULL))
            continue
        found = _PIECES.get(kind, _whole_numbers)(vector, avro)
        wire = {Type.VARCHAR: _LENGTH, Type.DOUBLE: _EIGHT_BYTES}.get(kind, _VARINT)
        mark = _THERE if avro else _tag(number, wire)
        pieces = [mark + piece for piece in found]
        if vector.null is not None:
            absent = _NULL if avro else b""
            for row in np.flatnonzero(vector.null).tolist():
                pieces[row] = absent
        parts.append(pieces)
    return [b"".join(row) for row in zip(*parts, strict=False)]


def _doubles(vector: Vector, _: bool) -> list[bytes]:
    data = vector.data.astype("<f8").tobytes()
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def _booleans(vector: Vector, _: bool) -> list[bytes]:
    return [b"\1" if value else b"\0" for value in vector.data.tolist()]


def _texts(vector: Vector, avro: bool) -> list[bytes]:
    encode = _avro_text if avro else _protobuf_text
    return [b"" if value is None else encode(value) for value in vector.data.tolist()]


def _whole_numbers(vector: Vector, _: bool) -> list[bytes]:
    """Zigzag varints of a column: seven bits of each number a byte, the last byte of a number below 128."""
    values: NDArray[np.int64] = vector.data
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    groups = np.empty((len(values), _LONGEST_VARINT), np.uint8)
    lengths = np.ones(len(values), np.int64)
    for i in range(_LONGEST_VARINT):
        rest = zigzag >> np.uint64(7 * i)
        more = rest >= 128
        groups[:, i] = (rest & np.uint64(127)).astype(np.uint8) | (more.astype(np.uint8) << 7)
        lengths += more
    data = groups.tobytes()
    return [
        data[at : at + length]
        for at, length in zip(range(0, len(data), _LONGEST_VARINT), lengths.tolist(), strict=True)
    ]


_PIECES: dict[Type, Callable[[Vector, bool], list[bytes]]] = {
    Type.DOUBLE: _doubles,
    Type.BOOLEAN: _booleans,
    Type.VARCHAR: _texts,
}


def _zigzag(number: int) -> int:
    return ((number << 1) ^ (number >> 63)) & (2**64 - 1)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _avro_text(text: str) -> bytes:
    data = text.encode()
    return _varint(2 * len(data)) + data


def _protobuf_text(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data


def _avro_field(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\1" if value else b"\0"
    if isinstance(value, int):
        return _varint(_zigzag(value))
    if isinstance(value, str):
        return _avro_text(value)
    items = b"".join(_varint(_zigzag(item)) for item in value)
    return _varint(2 * len(value)) + items + b"\0"


def _protobuf_field(number: int, value: Any) -> bytes:
    if isinstance(value, bool):
        return _tag(number, _VARINT) + (b"\1" if value else b"\0")
    if isinstance(value, int):
        return _tag(number, _VARINT) + _varint(_zigzag(value))
    return _tag(number, _LENGTH) + _protobuf_text(value)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)

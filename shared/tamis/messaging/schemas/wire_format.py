"""Header of a value with a schema: a zero byte, the schema's id, and for Protobuf the message indexes.

The id has four bytes. Message indexes say which message of the schema's file the value is: the position of a
message among those of the file, then of a nested message in it, and so on. They are zigzag varints, the first
one their number; the single byte 0 stands for the first message of the file.

Negative indexes in Avro values are refused: fastavro counts them from the end, as Python does. The value of
an enum is written as the index of its symbol, and the value of a union as the index of its type and the
value. A negative index can only come from damaged bytes. fastavro would read it as another symbol or type,
and the reading would look valid.
"""

from __future__ import annotations

from typing import Any, Literal


def refuse_negative_indexes(parsed: Any, named: dict[str, Any]) -> Any:
    """The schema of a record for `fastavro.schemaless_reader`, which then raises KeyError for every index
    that isn't in the schema. It can't be used to write.

    `parsed` was returned by `fastavro.parse_schema`, `named` is its argument `named_schemas`. Both are
    changed: the symbols of an enum, and the types of a union, are found in a dict by their index.
    """
    done: set[int] = set()
    for node in (parsed, *named.values()):
        _change(node, done)
    return parsed


def _change(node: Any, done: set[int]) -> Any:
    """The form of a part of the schema in which indexes are looked up in a dict."""
    if isinstance(node, list):
        return {"type": "union", **{index: _change(part, done) for index, part in enumerate(node)}}
    if not isinstance(node, dict) or id(node) in done:
        return node
    done.add(id(node))
    if isinstance(node.get("symbols"), list):
        node["symbols"] = dict(enumerate(node["symbols"]))
    for field in node.get("fields", ()):
        if id(field) not in done:
            done.add(id(field))
            field["type"] = _change(field["type"], done)
    for name in ("type", "items", "values"):
        if name in node:
            node[name] = _change(node[name], done)
    return node


Format = Literal["json", "avro", "protobuf"]
Kind = Literal["AVRO", "PROTOBUF"]
"""A format as the API of a schema registry calls it."""

KINDS: dict[Format, Kind] = {"avro": "AVRO", "protobuf": "PROTOBUF"}

HEADER = 5  # bytes before the value, or before its message indexes
FIRST_MESSAGE = (0,)
_MOST_INDEXES = 100  # messages can't be nested deeper


def header(schema: int) -> bytes:
    """The header of values with this schema.

    >>> header(7)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return b"\0" + schema.to_bytes(4, "big")


def schema_of(value: bytes) -> int | None:
    """The id of a value's schema; None if the value doesn't begin with a header.

    >>> schema_of(header(7) + b"..."), schema_of(b"{}"), schema_of(b"")
    (7, None, None)
    """
    if len(value) < HEADER or value[0] != 0:
        return None
    return int.from_bytes(value[1:HEADER], "big")


def message_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """The message indexes of a Protobuf value, and where the message begins.

    >>> message_indexes(header(7) + b"\\0..."), message_indexes(header(7) + b"\\4\\2\\6...")
    (((0,), 6), ((1, 3), 8))

    Raises ValueError if they are incomplete or impossible.
    """
    count, at = _varint(value, HEADER)
    if count == 0:
        return FIRST_MESSAGE, at
    if not 0 < count <= _MOST_INDEXES:
        raise ValueError(f"{count} message indexes")
    found = []
    for _ in range(count):
        index, at = _varint(value, at)
        found.append(index)
    return tuple(found), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(value):
            raise ValueError("the message indexes are incomplete")
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError("a message index is too large")

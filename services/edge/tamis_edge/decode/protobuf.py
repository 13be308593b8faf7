"""Protobuf readings to columns, by descriptors that are built at run time."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from google.protobuf import wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tamis.expressions.nodes import Type
from tamis.messaging.schemas.registry import WriterSchema
from tamis.messaging.schemas.wire_format import message_indexes
from tamis_edge.decode.logical_types import Convert, SchemaError, Unfit, WantedColumn, from_number

Get = Callable[[Any], Any]

# Files that every compiler of Protobuf has; registries don't store them.
_KNOWN = {
    f"google/protobuf/{name}.proto": import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
}
_WRAPPERS = frozenset(f"google.protobuf.{name}" for name in wrappers_pb2.DESCRIPTOR.message_types_by_name)
_TIMESTAMP = "google.protobuf.Timestamp"
_MAIN = "tamis.source.proto"  # the file of the schema itself, which has no name in the registry


class ProtobufReader:
    """Reads Protobuf values of one writer's schema as the columns of a stream."""

    def __init__(self, schema: WriterSchema, columns: Sequence[WantedColumn]) -> None:
        """Raises SchemaError if the schema can't be used."""
        pool, added = DescriptorPool(), set[str]()
        try:
            for name, text in schema.references:
                _add(pool, added, _file(name, text))
            main = _file(_MAIN, schema.text)
            _add(pool, added, main)
            self._file = pool.FindFileByName(_MAIN)
        # Schemas come from outside, and the library raises errors of many kinds.
        except Exception as error:
            raise SchemaError(f"not a Protobuf schema: {type(error).__name__}: {error!s:.200}") from None
        self._messages = [self._file.message_types_by_name[one.name] for one in main.message_type]
        self._wanted = columns
        self._known: dict[tuple[int, ...], tuple[type[Message], list[Get]]] = {}

    def read(self, payload: bytes) -> tuple[Message, list[Get]]:
        """The message of one value, and the getters of its columns. Raises ValueError if the value doesn't
        match its schema.
        """
        indexes, at = message_indexes(payload)
        found = self._known.get(indexes)
        if found is None:
            found = self._known[indexes] = self._compile(indexes)
        kind, getters = found
        try:
            return kind.FromString(payload[at:]), getters
        except DecodeError as error:
            raise ValueError(str(error)) from None

    def columns(self, rows: Sequence[tuple[Message, list[Get]]]) -> list[Sequence[Any]]:
        """The columns of messages."""
        if not rows:
            return [[] for _ in self._wanted]
        first = rows[0][1]
        if all(getters is first for _, getters in rows):
            return [[get(message) for message, _ in rows] for get in first]
        return [[getters[i](message) for message, getters in rows] for i in range(len(self._wanted))]

    def _compile(self, indexes: tuple[int, ...]) -> tuple[type[Message], list[Get]]:
        messages: Sequence[Descriptor] = self._messages
        found: Descriptor | None = None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueError(f"the schema has no message {list(indexes)}")
            found = messages[index]
            messages = found.nested_types
        assert found is not None
        return GetMessageClass(found), [_getter(found, column) for column in self._wanted]


def _file(name: str, text: str) -> FileDescriptorProto:
    found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    found.name = name
    return found


def _add(pool: DescriptorPool, added: set[str], file: FileDescriptorProto) -> None:
    if file.name in added:
        return
    for name in file.dependency:
        if name not in added and name in _KNOWN:
            pool.AddSerializedFile(_KNOWN[name].serialized_pb)
            added.add(name)
    pool.AddSerializedFile(file.SerializeToString())
    added.add(file.name)


def _getter(message: Descriptor, column: WantedColumn) -> Get:
    """Gets a column's value of a message. A field that the schema doesn't have is NULL."""
    steps: list[Get] = []
    at: Descriptor | None = message
    for i, name in enumerate(column.path):
        field = None if at is None else at.fields_by_name.get(name)
        if field is None:
            return lambda _: None
        last = i == len(column.path) - 1
        if not last and _is_map(field):
            steps.append(partial(_entry, name, column.path[i + 1]))
            assert field.message_type is not None
            value = field.message_type.fields_by_name["value"]
            if i + 2 == len(column.path):
                convert = _conversion(value, column)
                return _chain([*steps, convert] if convert else steps)
            at = value.message_type
            if at is None or i + 3 > len(column.path):
                return lambda _: None
            return _chain(
                [
                    *steps,
                    _getter(at, WantedColumn(column.name, column.type, column.path[i + 2 :], column.unit)),
                ]
            )
        steps.append(_field(field))
        if last:
            convert = _conversion(field, column)
            if convert is not None:
                steps.append(convert)
        at = field.message_type
    return _chain(steps)


def _chain(steps: list[Get]) -> Get:
    if len(steps) == 1:
        return steps[0]

    def get(value: Any) -> Any:
        for step in steps:
            if value is None:
                return None
            value = step(value)
        return value

    return get


def _field(field: FieldDescriptor) -> Get:
    name = field.name
    if field.is_repeated:
        return lambda message: Unfit("a map") if _is_map(field) else Unfit("a repeated field")
    if field.has_presence:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return lambda message: getattr(message, name)


def _entry(name: str, key: str, message: Any) -> Any:
    entries = getattr(message, name)
    # Not by indexing, which adds a missing entry to the message.
    return entries[key] if key in entries else None  # noqa: SIM401


def _is_map(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return (
        kind is not None
        and kind.GetOptions().map_entry
        and kind.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING
    )


def _conversion(field: FieldDescriptor, column: WantedColumn) -> Convert | None:
    """Converts a field's value for a column; None if it stays as it is."""
    if field.is_repeated:
        return None
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number) or Unfit(f"the unknown enum value {number}")
    if field.message_type is not None:
        name = field.message_type.full_name
        if name == _TIMESTAMP and column.type is Type.TIMESTAMP:
            return lambda time: time.seconds * 1_000_000 + time.nanos // 1_000
        if name in _WRAPPERS:
            inner = _conversion(field.message_type.fields_by_name["value"], column)
            return (lambda box: inner(box.value)) if inner else (lambda box: box.value)
        return lambda _: Unfit(f"a message {name:.60}")
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda _: Unfit("a value of type bytes")
    number = from_number(column)
    if number is not None and field.cpp_type not in (
        FieldDescriptor.CPPTYPE_BOOL,
        FieldDescriptor.CPPTYPE_STRING,
    ):
        return number
    return None

"""Avro readings to columns: one call of fastavro for each reading, without objects for logical types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from operator import itemgetter
from typing import Any, cast

from fastavro import parse_schema, schemaless_reader

from tamis.messaging.schemas.registry import WriterSchema
from tamis.messaging.schemas.wire_format import HEADER, refuse_negative_indexes
from tamis_edge.decode.logical_types import (
    Convert,
    SchemaError,
    WantedColumn,
    converted,
    from_days,
    from_decimal,
    from_number,
    from_ticks,
    refused,
)

Node = Any  # a schema, or a part of it: the name of a type, a dict, or a list for a union

DEEPEST = 100  # nested types

_TICKS = {"timestamp-millis": 1_000, "timestamp-micros": 1_000_000, "timestamp-nanos": 1_000_000_000}
_TICKS |= {f"local-{name}": per_second for name, per_second in _TICKS.items()}
# The Python type of the values of an Avro type.
_KINDS: dict[str, type] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}


class AvroReader:
    """Reads Avro values of one writer's schema as the columns of a stream."""

    def __init__(self, schema: WriterSchema, columns: Sequence[WantedColumn]) -> None:
        """Raises SchemaError if the schema can't be used."""
        try:
            named: dict[str, Any] = {}
            for _, text in schema.references:
                parse_schema(json.loads(text), named_schemas=named)
            full = parse_schema(json.loads(schema.text), named_schemas=named)
            bare: dict[str, Any] = {}
            for _, text in schema.references:
                parse_schema(_without_logical_types(json.loads(text)), named_schemas=bare)
            plain: Any = parse_schema(_without_logical_types(json.loads(schema.text)), named_schemas=bare)
        # Schemas come from outside, and the parser has no base class for its errors.
        except Exception as error:
            raise SchemaError(f"not an Avro schema: {type(error).__name__}: {error!s:.200}") from None
        types = _Types(named)
        types.check(full)
        if types.kind(full) not in ("record", "error"):
            raise SchemaError(f"a reading must be a record, and this schema is of type {types.kind(full)}")
        self._schema = refuse_negative_indexes(plain, bare)
        found = [types.follow(full, column.path) for column in columns]
        self._conversions = [
            _conversions(types, leaves, c) for (_, leaves), c in zip(found, columns, strict=True)
        ]
        paths = [path for path, _ in found]
        flat = len(paths) > 1 and all(path is not None and len(path) == 1 for path in paths)
        self._flat = itemgetter(*(path[0] for path in paths if path)) if flat else None
        self._paths = paths

    def read(self, payload: bytes) -> dict[str, Any]:
        """The record of one value. Raises ValueError if the value doesn't match its schema."""
        data = BytesIO(payload)
        data.seek(HEADER)
        try:
            row = schemaless_reader(data, self._schema, None)
        except KeyError as error:
            raise ValueError(
                f"an enum or a union has no member with the index in the value: {error}"
            ) from None
        except Exception as error:  # bytes from outside: fastavro raises errors of many kinds
            raise ValueError(f"{type(error).__name__}: {error!s:.200}") from None
        if data.tell() != len(payload):
            raise ValueError(f"{len(payload) - data.tell()} bytes are left behind the record")
        return cast(dict[str, Any], row)

    def columns(self, rows: Sequence[dict[str, Any]]) -> list[Sequence[Any]]:
        """The columns of records."""
        if not rows:
            return [[] for _ in self._paths]
        raw: Sequence[Sequence[Any]]
        if self._flat is not None:
            raw = list(zip(*map(self._flat, rows), strict=True))
        else:
            raw = [_follow(rows, path) for path in self._paths]
        return [converted(values, by) for values, by in zip(raw, self._conversions, strict=True)]


def _follow(rows: Sequence[dict[str, Any]], path: tuple[str, ...] | None) -> list[Any]:
    if path is None:
        return [None] * len(rows)
    values: list[Any] = [row.get(path[0]) for row in rows]
    for step in path[1:]:
        values = [value.get(step) if type(value) is dict else None for value in values]
    return values


def _without_logical_types(node: Node) -> Node:
    """A schema whose values fastavro reads as plain numbers and bytes, which take a third of the time."""
    if isinstance(node, list):
        return [_without_logical_types(part) for part in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = _without_logical_types(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_without_logical_types(field) for field in kept["fields"]]
    return kept


class _Types:
    """The named types of a schema, and questions about its parts."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._empty: dict[str, bool] = {}

    def resolve(self, node: Node) -> Node:
        """The type itself, if it is given by its name."""
        while True:
            if isinstance(node, str) and node in self._named:
                node = self._named[node]
            elif isinstance(node, dict) and (
                isinstance(node["type"], (dict, list)) or node["type"] in self._named
            ):
                node = node["type"]
            else:
                return node

    def kind(self, node: Node) -> str:
        """The name of the type."""
        node = self.resolve(node)
        if isinstance(node, list):
            return "union"
        return str(node["type"] if isinstance(node, dict) else node)

    def branches(self, node: Node) -> Iterator[Node]:
        """The types that a value can have: those of a union but null, or the type itself."""
        node = self.resolve(node)
        for part in node if isinstance(node, list) else (node,):
            if self.kind(part) != "null":
                yield self.resolve(part)

    def check(self, node: Node, inside: tuple[str, ...] = (), depth: int = 0) -> None:
        """Refuse schemas by which a short value could take endless time or memory.

        A type that contains itself lets a value nest until the stack overflows. Items without bytes let a
        few bytes claim any number of items.
        """
        if depth > DEEPEST:
            raise SchemaError(f"its types are nested more than {DEEPEST} deep")
        node = self.resolve(node)
        if isinstance(node, list):
            for part in node:
                self.check(part, inside, depth + 1)
            return
        if not isinstance(node, dict):
            return
        kind = node["type"]
        if kind == "array":
            self.check(node["items"], inside, depth + 1)
            if self._may_be_empty(node["items"]):
                raise SchemaError("an array has items without bytes")
        elif kind == "map":
            self.check(node["values"], inside, depth + 1)
        elif "fields" in node:
            if node["name"] in inside:
                raise SchemaError(f"the type {node['name']} contains itself")
            if node["name"] in self._empty:
                return  # checked already
            for field in node["fields"]:
                self.check(field["type"], (*inside, node["name"]), depth + 1)
            self._empty[node["name"]] = all(self._may_be_empty(field["type"]) for field in node["fields"])

    def _may_be_empty(self, node: Node) -> bool:
        node = self.resolve(node)
        kind = self.kind(node)
        if kind in ("record", "error"):
            return self._empty[node["name"]]
        return kind == "null" or (kind == "fixed" and node["size"] == 0)

    def follow(self, node: Node, path: tuple[str, ...]) -> tuple[tuple[str, ...] | None, list[Node]]:
        """The path by the writer's names, and the types at its end. The path is None if no type has it."""
        types, steps = [*self.branches(node)], []
        for step in path:
            names = {name for one in types if (name := _field_name(one, step)) is not None}
            if len(names) != 1:
                return None, []
            (name,) = names
            steps.append(name)
            types = [part for one in types for part in self._below(one, name)]
        return tuple(steps), types

    def _below(self, node: Node, name: str) -> Iterator[Node]:
        if self.kind(node) == "map":
            yield from self.branches(node["values"])
        elif self.kind(node) in ("record", "error"):
            for field in node["fields"]:
                if field["name"] == name:
                    yield from self.branches(field["type"])


def _field_name(node: Node, step: str) -> str | None:
    """The writer's name of a field, which may have been called otherwise before; None if there is none."""
    if not isinstance(node, dict):
        return None
    if node["type"] == "map":
        return step
    fields = node.get("fields", ())
    if any(field["name"] == step for field in fields):
        return step
    return next((field["name"] for field in fields if step in field.get("aliases", ())), None)


def _conversions(types: _Types, leaves: list[Node], column: WantedColumn) -> dict[type, Convert]:
    """The conversion of a column's values by their Python type; nothing for those that stay as they are."""
    found: dict[type, tuple[str, Convert | None]] = {}
    for leaf in leaves:
        kind = types.kind(leaf)
        logical = leaf.get("logicalType") if isinstance(leaf, dict) else None
        name = f"{kind} {logical}" if logical else ("number" if kind in ("int", "long") else kind)
        value_type = _KINDS.get(kind)
        if value_type is None:
            continue
        convert = _conversion(kind, logical, leaf, column)
        before = found.get(value_type)
        if before is not None and before[0] != name and (before[1] is not None or convert is not None):
            # Values don't say which type of the union they are.
            convert = refused(f"a union of {before[0]} and {name}")
        found[value_type] = name, convert
    return {kind: convert for kind, (_, convert) in found.items() if convert is not None}


def _conversion(kind: str, logical: str | None, leaf: Node, column: WantedColumn) -> Convert | None:
    number = kind in ("int", "long")
    if number and logical in _TICKS and kind == "long":
        return from_ticks(column, _TICKS[logical], logical)
    if kind == "int" and logical == "date":
        return from_days(column)
    if kind in ("bytes", "fixed"):
        if logical == "decimal":
            return from_decimal(column, int(leaf.get("scale", 0)))
        return refused(f"a value of type {kind}")
    # Any other logical type counts as the type that it is made of, as Avro says of unknown ones.
    return from_number(column) if number or kind in ("float", "double") else None

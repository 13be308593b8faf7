"""Readings with schemas to raw columns: each reading by the schema that it names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tamis.messaging.dead_letters import Reason
from tamis.messaging.schemas.registry import UnusableSchema, WriterSchema
from tamis.messaging.schemas.wire_format import schema_of
from tamis.recordings.json_values import Offence
from tamis_edge.decode.json_payloads import slices, without_nested
from tamis_edge.decode.logical_types import WantedColumn

MOST_READERS = 100  # compiled schemas that are kept for one stream

Schemas = Mapping[int, WriterSchema | UnusableSchema]
"""Schemas by their number."""


class _Reader(Protocol):
    """Reads values of one schema."""

    def read(self, payload: bytes) -> Any: ...

    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]: ...


class SchemaRows:
    """Reads readings with schemas as the columns of one stream."""

    def __init__(self, columns: Sequence[WantedColumn], limit: int) -> None:
        """`limit`: bytes of a reading."""
        self._columns, self._limit = columns, limit
        self._readers: OrderedDict[WriterSchema, _Reader | UnusableSchema] = OrderedDict()

    def read(
        self, payloads: Sequence[bytes], schemas: Schemas
    ) -> tuple[dict[str, Sequence[Any]], list[Offence]]:
        """The raw columns, None where a reading can't be read or lacks the column, and the mistakes."""
        groups: dict[int, list[int]] = {}
        offences: list[Offence] = []
        for row, payload in enumerate(payloads):
            number = schema_of(payload)
            if number is None:
                error = (
                    "not in the wire format of a schema registry: no zero byte and schema id at its beginning"
                )
                offences.append(Offence(row, Reason.UNDECODABLE, error))
            elif len(payload) > self._limit:
                error = f"{len(payload)} bytes; the limit is {self._limit}"
                offences.append(Offence(row, Reason.TOO_LARGE, error))
            else:
                groups.setdefault(number, []).append(row)
        names = [column.name for column in self._columns]
        raw: dict[str, list[Any]] = {}
        for number, rows in groups.items():
            found, bad = self._read(rows, payloads, schemas[number])
            if len(rows) == len(payloads) and not bad:
                return dict(zip(names, found, strict=True)), []
            offences += bad
            lost = {offence.row for offence in bad}
            good = [row for row in rows if row not in lost]
            raw = raw or {name: [None] * len(payloads) for name in names}
            for values, column in zip(found, raw.values(), strict=True):
                for row, value in zip(good, values, strict=True):
                    column[row] = value
        return dict(raw) or {name: [None] * len(payloads) for name in names}, offences

    def _read(
        self, rows: Sequence[int], payloads: Sequence[bytes], schema: WriterSchema | UnusableSchema
    ) -> tuple[Sequence[Sequence[Any]], list[Offence]]:
        """The columns of the rows that can be read."""
        reader = schema if isinstance(schema, UnusableSchema) else self._reader(schema)
        if isinstance(reader, UnusableSchema):
            empty: list[Sequence[Any]] = [[] for _ in self._columns]
            return empty, [Offence(row, reader.reason, reader.error) for row in rows]
        columns: list[list[Any]] = [[] for _ in self._columns]
        offences, read = [], reader.read
        for start, end in slices([payloads[row] for row in rows]):
            found = []
            for row in rows[start:end]:
                try:
                    found.append(read(payloads[row]))
                except ValueError as error:
                    what = f"doesn't match its schema {schema.number}: {error}"
                    offences.append(Offence(row, Reason.UNDECODABLE, what))
            for column, values in zip(columns, reader.columns(found), strict=True):
                column.extend(without_nested(values))
        return columns, offences

    def _reader(self, schema: WriterSchema) -> _Reader | UnusableSchema:
        found = self._readers.get(schema)
        if found is None:
            found = self._readers[schema] = _compiled(schema, self._columns)
            if len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        else:
            self._readers.move_to_end(schema)
        return found


def _compiled(schema: WriterSchema, columns: Sequence[WantedColumn]) -> _Reader | UnusableSchema:
    from tamis_edge.decode.logical_types import SchemaError

    try:
        # Each format has a library of its own.
        if schema.kind == "AVRO":
            from tamis_edge.decode.avro import AvroReader

            return AvroReader(schema, columns)
        from tamis_edge.decode.protobuf import ProtobufReader

        return ProtobufReader(schema, columns)
    except SchemaError as error:
        return UnusableSchema(schema.number, Reason.UNDECODABLE, f"schema {schema.number}: {error}")

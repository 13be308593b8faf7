"""Decoder of a stream: payloads or raw columns to checked tuples, and the readings that can't be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.omission.columns import Int64s
from tamis.plan.model import StreamColumn, StreamPlan
from tamis.recordings.field_paths import FieldPath
from tamis.recordings.json_values import Offence, convert
from tamis.recordings.times import TimeUnit
from tamis_edge.core.max_ahead import ahead_of_clock, limit, too_far
from tamis_edge.decode.json_payloads import FlatRows, parse, slices, without_nested
from tamis_edge.decode.logical_types import WantedColumn
from tamis_edge.decode.schema_rows import SchemaRows, Schemas
from tamis_edge.source_fields import FieldMap


@dataclass(frozen=True, slots=True)
class Converted:
    """The vectors of all columns, by name. `misfits`: the values that don't fit the column's type, by column.
    `value`: the value that was sent, by column and row.
    """

    vectors: dict[str, Vector]
    misfits: Mapping[str, Sequence[Offence]]
    value: Callable[[str, int], Any]

    def over(
        self, vectors: Mapping[str, Vector], rows: Int64s, value: Callable[[str, int], Any]
    ) -> Converted:
        """The columns of a larger batch: these at its positions `rows`, and `vectors` at all others. `value`
        is of the larger batch.
        """
        return Converted(
            {name: _put(vector, rows, self.vectors[name]) for name, vector in vectors.items()},
            {name: at_rows(some, rows) for name, some in self.misfits.items()},
            value,
        )


def convert_all(
    columns: Sequence[StreamColumn], raw: Mapping[str, Sequence[Any]], unit: TimeUnit
) -> Converted:
    """Columns of Python values with the types of a stream's columns."""
    vectors: dict[str, Vector] = {}
    misfits: dict[str, Sequence[Offence]] = {}
    for column in columns:
        vectors[column.name], misfits[column.name] = convert(column.name, raw[column.name], column.type, unit)
    return Converted(vectors, misfits, lambda name, row: raw[name][row])


def at_rows(offences: Sequence[Offence], rows: Int64s) -> list[Offence]:
    """Offences of the payloads that have the positions `rows` in a larger batch."""
    return [replace(offence, row=int(rows[offence.row])) for offence in offences]


def _put(vector: Vector, rows: Int64s, some: Vector) -> Vector:
    data = vector.data.copy()
    data[rows] = some.data
    null = np.zeros(len(data), np.bool_) if vector.null is None else vector.null.copy()
    null[rows] = False if some.null is None else some.null
    return Vector(data, null if null.any() else None)


# Bytes of a reading, for a table's row characters of its texts. A tuple goes out with its key, and an alarm
# with the tuples of all its streams: together they must stay below the limit of a topic (`MAX_RECORD_BYTES`).
MAX_READING = 900_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """Valid tuples and mistakes of a batch. `rows`: positions of the valid tuples in the batch; `columns`
    and `times` have only these.
    """

    rows: Int64s
    columns: dict[str, Vector]
    times: Int64s
    offences: list[Offence]


class Decoder:
    """Decodes micro-batches of one stream with one field map."""

    def __init__(self, stream: StreamPlan, mapping: FieldMap, *, replayed: bool = False) -> None:
        """`replayed`: the readings are those of a recording (see `core.max_ahead`)."""
        self.stream = stream
        self._most = limit(stream, replayed)
        self.mapping = mapping
        # Of TIMESTAMPs that are numbers.
        self.unit: TimeUnit = mapping.unit or stream.time_unit or "us"
        self._paths = {column.name: mapping.path(column.name) for column in stream.columns}
        # All columns in one go where all are fields of the reading itself; a getter of one gives no tuple.
        flat = len(self._paths) > 1 and all(len(path.steps) == 1 for path in self._paths.values())
        self._flat = itemgetter(*(path.steps[0] for path in self._paths.values())) if flat else None
        self._flat_rows = FlatRows.of(stream, self._paths, self.unit)
        self._schema_rows: SchemaRows | None = None

    def path(self, column: str) -> FieldPath:
        """The path to a column's value in a reading."""
        return self._paths[column]

    def payloads(self, payloads: Sequence[bytes], now: int) -> Decoded:
        """Decode JSON objects, one in each payload. `now`: wall clock, microseconds."""
        n = len(payloads)
        flat = None if self._flat_rows is None else self._flat_rows.decode(payloads)
        if flat is None:
            converted, offences = self._parse(payloads)
            return self._check(converted, n, offences, now)

        def value(column: str, row: int) -> Any:
            return orjson.loads(payloads[row]).get(self._paths[column].steps[0])

        vectors, left = flat
        if not len(left):
            return self._check(Converted(vectors, {}, value), n, [], now)
        others, offences = self._parse([payloads[row] for row in left.tolist()])

        def any_value(column: str, row: int) -> Any:
            at = int(np.searchsorted(left, row))
            return others.value(column, at) if at < len(left) and left[at] == row else value(column, row)

        return self._check(others.over(vectors, left, any_value), n, at_rows(offences, left), now)

    def _parse(self, payloads: Sequence[bytes]) -> tuple[Converted, list[Offence]]:
        """The columns of JSON objects, by way of objects of Python."""
        raw: dict[str, list[Any]] = {name: [] for name in self._paths}
        offences: list[Offence] = []
        for start, end in slices(payloads):
            rows, faults = parse(payloads[start:end], MAX_READING)
            offences += [Offence(start + fault.row, fault.reason, fault.error) for fault in faults]
            for name, values in zip(self._paths, self._extract(rows), strict=True):
                raw[name] += without_nested(values)
        return convert_all(self.stream.columns, raw, self.unit), offences

    def with_schemas(self, payloads: Sequence[bytes], schemas: Schemas, now: int) -> Decoded:
        """Values of Avro or Protobuf in the wire format of a schema registry. `schemas` has the schemas that
        they name.
        """
        if self._schema_rows is None:
            wanted = [
                WantedColumn(column.name, column.type, self._paths[column.name].steps, self.unit)
                for column in self.stream.columns
            ]
            self._schema_rows = SchemaRows(wanted, MAX_READING)
        raw, offences = self._schema_rows.read(payloads, schemas)
        # Times come as microseconds from there, whatever they were.
        converted = convert_all(self.stream.columns, raw, "us")
        return self._check(converted, len(payloads), offences, now)

    def _extract(self, rows: Sequence[dict[str, Any]]) -> Iterable[Sequence[Any]]:
        """The values of each column, None if a row lacks it."""
        if self._flat is not None:
            try:
                return list(zip(*map(self._flat, rows), strict=True))
            except KeyError:
                pass  # some row lacks a field
        return [path.values(rows) for path in self._paths.values()]

    def columns(self, raw: Mapping[str, Sequence[Any]], rows: int, now: int) -> Decoded:
        """Decode columns of Python values, named as the mapping's paths say. A missing column is NULL."""
        named = {name: path.cells(raw) or [None] * rows for name, path in self._paths.items()}
        texts = [named[column.name] for column in self.stream.columns if column.type is Type.VARCHAR]
        offences = []
        for row, cells in enumerate(zip(*texts, strict=True)):
            size = sum(len(cell) for cell in cells if type(cell) is str)
            if size > MAX_READING:
                error = f"texts of {size} characters; the limit is {MAX_READING}"
                offences.append(Offence(row, Reason.TOO_LARGE, error))
        return self._check(convert_all(self.stream.columns, named, self.unit), rows, offences, now)

    def _check(self, converted: Converted, n: int, offences: list[Offence], now: int) -> Decoded:
        """Check NOT NULL, CHECKs and times of `n` rows."""
        stream, columns = self.stream, converted.vectors
        bad = np.zeros(n, np.bool_)
        bad[[offence.row for offence in offences]] = True

        def accuse(rows: np.ndarray, reason: Reason, error: Any) -> None:
            for row in rows.tolist():
                if not bad[row]:
                    bad[row] = True
                    offences.append(Offence(row, reason, error(row)))

        for column in stream.columns:
            vector = columns[column.name]
            for misfit in converted.misfits.get(column.name, ()):
                if not bad[misfit.row]:
                    bad[misfit.row] = True
                    offences.append(misfit)
            if (column.not_null or column.name == stream.time) and vector.null is not None:
                path = self._paths[column.name].text
                accuse(
                    np.flatnonzero(vector.null & ~bad),
                    Reason.MISSING_FIELD,
                    lambda _, name=column.name, path=path: (
                        f"{name}: no value in field {path!r}, which must not be NULL"
                    ),
                )
        for column in stream.columns:
            if column.check is not None:
                fits = evaluate(column.check, {("", name): v for name, v in columns.items()}, n)
                outside = ~fits.data.astype(np.bool_)
                if fits.null is not None:
                    outside &= ~fits.null  # a CHECK admits NULL
                accuse(
                    np.flatnonzero(outside & ~bad),
                    Reason.OUT_OF_DOMAIN,
                    lambda row, name=column.name, check=column.check: (
                        f"{name}: {converted.value(name, row)!r:.80} is outside of the column's domain, "
                        f"{to_sql(check):.200}"
                    ),
                )
        times = np.zeros(n, np.int64) if stream.time is None else columns[stream.time].data
        accuse(
            np.flatnonzero(too_far(times, now, self._most) & ~bad),
            Reason.AHEAD_OF_CLOCK,
            lambda row: f"{stream.time}: {ahead_of_clock(int(times[row]) - now, self._most or 0)}",
        )
        good = np.flatnonzero(~bad)
        if len(good) < n:
            columns = {name: vector.take(good) for name, vector in columns.items()}
            times = times[good]
        return Decoded(good, columns, times, sorted(offences, key=lambda offence: offence.row))

"""Decoder of a stream: payloads or raw columns to checked tuples, and the readings that can't be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.sql_text import to_sql
from tamis.expressions.vectorized.evaluate import evaluate
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.plan.model import StreamPlan
from tamis.recordings.json_values import Offence, convert
from tamis.recordings.time_units import TimeUnit
from tamis_edge.core.max_ahead import limit, too_far
from tamis_edge.core.messages.keys import Int64s
from tamis_edge.decode.by_schema.logical_types import WantedColumn
from tamis_edge.decode.by_schema.rows import SchemaRows, Schemas
from tamis_edge.decode.field_map import FieldMap
from tamis_edge.decode.json_rows import parse

# Payloads parsed at a time: few enough that their objects stay in the processor's cache.
SLICE = 500

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
        self._paths = {
            column.name: tuple(mapping.fields.get(column.name, column.name).split("."))
            for column in stream.columns
        }
        # All columns in one go where all are fields of the reading itself; a getter of one gives no tuple.
        flat = len(self._paths) > 1 and all(len(path) == 1 for path in self._paths.values())
        self._flat = itemgetter(*(path[0] for path in self._paths.values())) if flat else None
        self._schema_rows: SchemaRows | None = None

    def path(self, column: str) -> tuple[str, ...]:
        """The steps to a column's value in a reading."""
        return self._paths[column]

    def payloads(self, payloads: Sequence[bytes], now: int) -> Decoded:
        """Decode JSON objects, one in each payload. `now`: wall clock, microseconds."""
        raw: dict[str, list[Any]] = {name: [] for name in self._paths}
        offences: list[Offence] = []
        for start in range(0, len(payloads), SLICE):
            rows, faults = parse(payloads[start : start + SLICE], MAX_READING)
            offences += [Offence(start + fault.row, fault.reason, fault.error) for fault in faults]
            for name, values in zip(self._paths, self._extract(rows), strict=True):
                raw[name] += values
        return self._check(raw, len(payloads), offences, now, self.unit)

    def with_schemas(self, payloads: Sequence[bytes], schemas: Schemas, now: int) -> Decoded:
        """Values of Avro or Protobuf in the wire format of a schema registry. `schemas` has the schemas that
        they name.
        """
        if self._schema_rows is None:
            wanted = [
                WantedColumn(column.name, column.type, self._paths[column.name], self.unit)
                for column in self.stream.columns
            ]
            self._schema_rows = SchemaRows(wanted, MAX_READING)
        raw, offences = self._schema_rows.read(payloads, schemas)
        # Times come as microseconds from there, whatever they were.
        return self._check(raw, len(payloads), offences, now, "us")

    def _extract(self, rows: Sequence[dict[str, Any]]) -> Iterable[Sequence[Any]]:
        """The values of each column, None if a row lacks it."""
        if self._flat is not None:
            try:
                return list(zip(*map(self._flat, rows), strict=True))
            except KeyError:
                pass  # some row lacks a field
        return [_follow(rows, path) for path in self._paths.values()]

    def columns(self, raw: Mapping[str, Sequence[Any]], rows: int, now: int) -> Decoded:
        """Decode columns of Python values, named as the mapping's paths say. A missing column is NULL."""
        named = {name: raw.get(".".join(path)) or [None] * rows for name, path in self._paths.items()}
        texts = [named[column.name] for column in self.stream.columns if column.type is Type.VARCHAR]
        offences = []
        for row, cells in enumerate(zip(*texts, strict=True)):
            size = sum(len(cell) for cell in cells if type(cell) is str)
            if size > MAX_READING:
                error = f"texts of {size} characters; the limit is {MAX_READING}"
                offences.append(Offence(row, Reason.TOO_LARGE, error))
        return self._check(named, rows, offences, now, self.unit)

    def _check(
        self, raw: Mapping[str, Sequence[Any]], n: int, offences: list[Offence], now: int, unit: TimeUnit
    ) -> Decoded:
        """Check raw columns; `unit` is that of TIMESTAMPs that are numbers."""
        stream = self.stream
        bad = np.zeros(n, np.bool_)
        bad[[offence.row for offence in offences]] = True

        def accuse(rows: np.ndarray, reason: Reason, error: Any) -> None:
            for row in rows.tolist():
                if not bad[row]:
                    bad[row] = True
                    offences.append(Offence(row, reason, error(row)))

        columns: dict[str, Vector] = {}
        for column in stream.columns:
            values = raw[column.name]
            vector, misfits = convert(column.name, values, column.type, unit)
            for misfit in misfits:
                if not bad[misfit.row]:
                    bad[misfit.row] = True
                    offences.append(misfit)
            if (column.not_null or column.name == stream.time) and vector.null is not None:
                path = ".".join(self._paths[column.name])
                accuse(
                    np.flatnonzero(vector.null & ~bad),
                    Reason.MISSING_FIELD,
                    lambda _, name=column.name, path=path: (
                        f"{name}: no value in field {path!r}, which must not be NULL"
                    ),
                )
            columns[column.name] = vector
        for column in stream.columns:
            if column.check is not None:
                fits = evaluate(column.check, {("", name): v for name, v in columns.items()}, n)
                outside = ~fits.data.astype(np.bool_)
                if fits.null is not None:
                    outside &= ~fits.null  # a CHECK admits NULL
                values = raw[column.name]
                accuse(
                    np.flatnonzero(outside & ~bad),
                    Reason.OUT_OF_DOMAIN,
                    lambda row, name=column.name, values=values, check=column.check: (
                        f"{name}: {values[row]!r:.80} is outside of the column's domain, {to_sql(check):.200}"
                    ),
                )
        times = np.zeros(n, np.int64) if stream.time is None else columns[stream.time].data
        accuse(
            np.flatnonzero(too_far(times, now, self._most) & ~bad),
            Reason.AHEAD_OF_CLOCK,
            lambda row: (
                f"{stream.time}: {(int(times[row]) - now) / 1e6:.3f} s ahead of this edge's clock; "
                f"max_ahead is {(self._most or 0) / 1e6:g} s"
            ),
        )
        good = np.flatnonzero(~bad)
        if len(good) < n:
            columns = {name: vector.take(good) for name, vector in columns.items()}
            times = times[good]
        return Decoded(good, columns, times, sorted(offences, key=lambda offence: offence.row))


def _follow(rows: Sequence[dict[str, Any]], path: tuple[str, ...]) -> list[Any]:
    values: list[Any] = [row.get(path[0]) for row in rows]
    for step in path[1:]:
        values = [value.get(step) if type(value) is dict else None for value in values]
    return values

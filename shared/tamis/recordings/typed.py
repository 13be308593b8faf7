"""A recording of one stream as typed columns, checked as an edge would check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, Vector
from tamis.query.model import ColumnDef, StreamDef
from tamis.recordings.files import Format, read_table

_ARROW = {
    Type.VARCHAR: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int64(),
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
}
_INT_LIMIT = 2**31


@dataclass(frozen=True)
class Recording:
    """The usable tuples of a stream's recording in the order of the file.

    `columns` are by name; `late` marks tuples behind the watermark of those before them; `table` is the
    file's own rows, parallel to the columns; `refused` counts the rows that an edge would put to the dead
    letters.
    """

    stream: StreamDef
    columns: dict[str, Vector]
    late: NDArray[np.bool_]
    table: pa.Table
    refused: int

    def __len__(self) -> int:
        return len(self.late)

    def under(self, alias: str) -> dict[tuple[str, str], Vector]:
        """The columns as a source of a query sees them."""
        return {(alias, name): vector for name, vector in self.columns.items()}


def read_recording(stream: StreamDef, paths: Sequence[str], form: Format | None = None) -> Recording:
    """Read the files of one stream. Each is a shard of its own, with its own watermark.

    Raises InputError for what is wrong with a file as a whole: a missing column, a value that isn't of its
    column's type. A row outside the declared domain, or with NULL where none may be, is left out and counted.
    """
    parts = [_read_one(stream, path, form) for path in paths]
    return Recording(
        stream=stream,
        columns={c.name: Vector.concat([p.columns[c.name] for p in parts]) for c in stream.columns},
        late=np.concatenate([p.late for p in parts]),
        table=pa.concat_tables([p.table for p in parts], promote_options="permissive"),
        refused=sum(p.refused for p in parts),
    )


def _read_one(stream: StreamDef, path: str, form: Format | None) -> Recording:
    table, columns = _conform(read_table(path, form, _types(stream)), stream, path)
    keep = _usable(stream, columns, table.num_rows)
    columns = {name: vector.take(keep) for name, vector in columns.items()}
    return Recording(
        stream, columns, _late(stream, columns), table.filter(pa.array(keep)), int((~keep).sum())
    )


def _types(stream: StreamDef) -> dict[str, pa.DataType]:
    return {c.name: _ARROW[c.type] for c in stream.columns if c.type in _ARROW}


def _conform(table: pa.Table, stream: StreamDef, path: str) -> tuple[pa.Table, dict[str, Vector]]:
    missing = [c.name for c in stream.columns if c.name not in table.column_names]
    if missing:
        raise InputError(
            f"no column {', '.join(missing)} for stream {stream.name}",
            where=path,
            hint=f"it has {', '.join(table.column_names)}",
        )
    return table, {c.name: _vector(table[c.name], c, path) for c in stream.columns}


def _vector(values: pa.ChunkedArray, column: ColumnDef, path: str) -> Vector:
    where = f"{path}, column {column.name}"
    if column.type is Type.TIMESTAMP:
        return _timestamps(values, where)
    try:
        typed = values.cast(_ARROW[column.type])
    except pa.ArrowInvalid as error:
        raise InputError(f"not {column.type}: {error}", where=where) from error
    null = np.asarray(pc.is_null(typed, nan_is_null=True).to_numpy(zero_copy_only=False), np.bool_)
    if column.type is Type.VARCHAR:
        data = typed.to_numpy(zero_copy_only=False)
        return Vector(data, null if null.any() else None)
    data = np.asarray(typed.fill_null(0).to_numpy(zero_copy_only=False))
    if column.type is Type.INT and (np.abs(data) >= _INT_LIMIT).any():
        row = int(np.flatnonzero(np.abs(data) >= _INT_LIMIT)[0])
        raise InputError(
            f"{data[row]} does not fit INT", where=f"{where}, row {row + 1}", hint="declare it BIGINT"
        )
    if column.type is Type.DOUBLE:
        null |= ~np.isfinite(data)
        data = np.where(null, 0.0, data)
    return Vector(data, null if null.any() else None)


def _timestamps(values: pa.ChunkedArray, where: str) -> Vector:
    """ISO 8601 (UTC where no zone is given), or numbers of microseconds."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    elif pa.types.is_string(values.type):
        parsed = pd.to_datetime(values.to_pandas(), format="ISO8601", utc=True, errors="coerce")
        bad = np.flatnonzero(parsed.isna().to_numpy() & values.is_valid().to_numpy())
        if len(bad):
            shown = values[int(bad[0])].as_py()
            raise InputError(
                f"{shown!r} is not a time",
                where=f"{where}, row {bad[0] + 1}",
                hint="write ISO 8601 or microseconds since 1970",
            )
        null = parsed.isna().to_numpy()
        data = parsed.dt.as_unit("us").astype("int64").to_numpy()
        return Vector(np.where(null, 0, data), null if null.any() else None)
    try:
        whole = values.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(f"not whole microseconds: {error}", where=where) from error
    null = np.asarray(whole.is_null().to_numpy(), np.bool_)
    return Vector(np.asarray(whole.fill_null(0).to_numpy()), null if null.any() else None)


def _usable(stream: StreamDef, columns: dict[str, Vector], rows: int) -> NDArray[np.bool_]:
    keep = np.ones(rows, np.bool_)
    domain: Columns = {("", name): vector for name, vector in columns.items()}
    for column in stream.columns:
        null = columns[column.name].null
        if null is not None and (column.not_null or column.name == stream.time):
            keep &= ~null
        if column.check is not None:
            verdict = evaluate(column.check, domain, rows)
            # A CHECK is broken only where it is false: NULL is admitted, as in SQL.
            keep &= verdict.data if verdict.null is None else verdict.data | verdict.null
    return keep


def _late(stream: StreamDef, columns: dict[str, Vector]) -> NDArray[np.bool_]:
    if stream.time is None:
        return np.zeros(len(next(iter(columns.values()))), np.bool_)
    times = columns[stream.time].data
    if not len(times):
        return np.zeros(0, np.bool_)
    before = np.concatenate([times[:1], np.maximum.accumulate(times)[:-1]])
    return times < before - stream.delay

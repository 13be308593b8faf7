"""Encoding of tuples and pending records for the state: Arrow IPC streams with a format version.

Nothing is unpickled, and columns are found by name and type. So the state stays readable when plans or this
program change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis_joiner.core.records.kafka_records import Records
from tamis_joiner.core.records.tuple_columns import Schema, TupleColumns
from tamis_joiner.core.state.arrow_ipc import ipc_bytes
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

FORMAT = b"1"

_ARROW = {
    Type.VARCHAR: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int64(),
    Type.BIGINT: pa.int64(),
    Type.TIMESTAMP: pa.int64(),
    Type.DOUBLE: pa.float64(),
}

# Column names of tuples come from users: the prefix separates them from the joiner's own.
_VALUE = "v:"


def encode_tuples(tuples: StoredTuples, schema: Schema) -> bytes:
    """Tuples as bytes, without the codes of their keys and without the marks of new tuples."""
    arrays: dict[str, Any] = {
        "time": tuples.times,
        "version": tuples.versions,
        "late": tuples.late,
        "arrived": tuples.arrived,
    }
    for name, type_ in schema.items():
        vector = tuples.columns[name]
        arrays[_VALUE + name] = pa.array(vector.data, _ARROW[type_], mask=vector.null)
    return _write(pa.RecordBatch.from_pydict(arrays))


def decode_tuples(blob: bytes, schema: Schema) -> TupleColumns:
    """The tuples of `encode_tuples` with the columns of `schema`. A column is NULL if it wasn't stored, or
    was stored with another type.
    """
    batch = _read(blob)
    columns = {}
    for name, type_ in schema.items():
        at = batch.schema.get_field_index(_VALUE + name)
        if at < 0 or batch.schema.field(at).type != _ARROW[type_]:
            columns[name] = Vector.nulls(type_, batch.num_rows)
        else:
            columns[name] = _vector(batch.column(at), type_)
    return TupleColumns(
        _numpy(batch, "time"),
        _numpy(batch, "version"),
        _numpy(batch, "late"),
        _numpy(batch, "arrived"),
        columns,
    )


def encode_records(records: list[Records]) -> bytes:
    """Records as bytes, in their order."""
    return _write(
        pa.RecordBatch.from_pydict(
            {
                "topic": pa.array([r.topic for r in records for _ in r.values], pa.string()),
                "partition": pa.array([r.partition for r in records for _ in r.values], pa.int32()),
                "value": pa.array([value for r in records for value in r.values], pa.binary()),
                "offset": np.concatenate([r.offsets for r in records]),
                "arrived": np.concatenate([r.arrived for r in records]),
            }
        )
    )


def decode_records(blob: bytes) -> list[Records]:
    """The records of `encode_records` by topic; those of a topic in their order."""
    batch = _read(blob)
    topics = np.array(batch.column("topic").to_pylist(), np.object_)
    values = batch.column("value").to_pylist()
    found = []
    for topic in dict.fromkeys(topics.tolist()):
        rows = np.flatnonzero(topics == topic)
        found.append(
            Records(
                topic,
                batch.column("partition")[int(rows[0])].as_py(),
                [values[row] for row in rows],
                _numpy(batch, "offset")[rows],
                _numpy(batch, "arrived")[rows],
            )
        )
    return found


def _vector(array: Any, type_: Type) -> Vector:
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if type_ is not Type.VARCHAR and null is not None:
        array = array.fill_null(False if type_ is Type.BOOLEAN else 0)
    data = array.to_numpy(zero_copy_only=False)
    return Vector(data, null)


def _numpy(batch: Any, name: str) -> Any:
    return batch.column(name).to_numpy(zero_copy_only=False)


def _write(batch: Any) -> bytes:
    return ipc_bytes(batch.replace_schema_metadata({b"tamis.format": FORMAT}))


def _read(blob: bytes) -> Any:
    with pa.ipc.open_stream(blob) as reader:
        found = (reader.schema.metadata or {}).get(b"tamis.format")
        if found != FORMAT:
            raise RefusedError(
                f"the state has format {found!r}; this joiner reads {FORMAT!r}",
                hint="start with a new checkpoint",
            )
        return reader.read_next_batch()

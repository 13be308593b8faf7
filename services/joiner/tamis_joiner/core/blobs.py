"""Tuples and parked records as bytes for the state: Arrow's IPC stream with a format version in its metadata.

Nothing in it is ever unpickled, and a reader knows columns by name and type, so that the state outlives
changes of plans and of this program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis_joiner.core.decode import Fresh, Records, Schema
from tamis_joiner.core.live import Live

FORMAT = b"1"

_ARROW = {
    Type.VARCHAR: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int64(),
    Type.BIGINT: pa.int64(),
    Type.TIMESTAMP: pa.int64(),
    Type.DOUBLE: pa.float64(),
}

# Column names of tuples come from users; ours are kept apart by this prefix.
_VALUE = "v:"


def tuples_blob(live: Live, schema: Schema) -> bytes:
    """Tuples as a blob; keys' codes and what is new are not in it."""
    arrays: dict[str, Any] = {
        "time": live.times,
        "version": live.versions,
        "late": live.late,
        "arrived": live.arrived,
    }
    for name, type_ in schema.items():
        vector = live.columns[name]
        arrays[_VALUE + name] = pa.array(vector.data, _ARROW[type_], mask=vector.null)
    return _write(pa.RecordBatch.from_pydict(arrays))


def tuples_of(blob: bytes, schema: Schema) -> Fresh:
    """The tuples of a blob with the columns of `schema`; a column that it lacks is NULL."""
    batch = _read(blob)
    columns = {}
    for name, type_ in schema.items():
        at = batch.schema.get_field_index(_VALUE + name)
        if at < 0 or batch.schema.field(at).type != _ARROW[type_]:
            columns[name] = Vector.nulls(type_, batch.num_rows)
        else:
            columns[name] = _vector(batch.column(at), type_)
    return Fresh(
        _numpy(batch, "time"),
        _numpy(batch, "version"),
        _numpy(batch, "late"),
        _numpy(batch, "arrived"),
        columns,
    )


def records_blob(parked: list[Records]) -> bytes:
    """Records that wait for a plan as a blob, in their order."""
    return _write(
        pa.RecordBatch.from_pydict(
            {
                "topic": pa.array([r.topic for r in parked for _ in r.values], pa.string()),
                "partition": pa.array([r.partition for r in parked for _ in r.values], pa.int32()),
                "value": pa.array([value for r in parked for value in r.values], pa.binary()),
                "offset": np.concatenate([r.offsets for r in parked]),
                "arrived": np.concatenate([r.arrived for r in parked]),
            }
        )
    )


def records_of(blob: bytes) -> list[Records]:
    """The records of a blob, by topic, each topic's in their order."""
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
    batch = batch.replace_schema_metadata({b"tamis.format": FORMAT})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _read(blob: bytes) -> Any:
    with pa.ipc.open_stream(blob) as reader:
        found = (reader.schema.metadata or {}).get(b"tamis.format")
        if found != FORMAT:
            raise RefusedError(
                f"state of format {found!r}; this joiner reads {FORMAT!r}", hint="start with a new checkpoint"
            )
        return reader.read_next_batch()

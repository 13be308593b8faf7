"""State of a group: one map from names to bytes, and its cache in the process.

    meta                         JSON: format, token, counters, frontiers, the index of all that follows
    plan/<version>               the plan that the group obeys, as the registry wrote it
    slice/<topic>/<width>/<n>    the tuples of a topic with n * width <= time < (n + 1) * width
    parked/<number>              records that wait for a plan
    newer/<number>               plans of a format that only a newer joiner reads
    standing/<alert>@<version>   the synopses of a standing query

Tuples and records are Arrow IPC streams with a format version, compressed. Nothing is unpickled, and columns
are found by name and type. So the state stays readable when plans or this program change. A batch rewrites
`meta`, the slices that it added tuples to and the synopses that changed, nothing else. All names change
together, as one commit of the state store. Each write of a slice has a new random token, and `meta` has the
tokens of all slices. So a slice that a process has cached under the token in `meta` is equal to the stored
one, even if attempts failed, were repeated, or the process was restarted in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis_joiner.core.records.envelopes import Records
from tamis_joiner.core.records.tuple_columns import Schema, TupleColumns
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

# Spark's state store takes several steps for each byte. In one thread, since all cores have tasks of their
# own.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)

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


class StateMap(Protocol):
    """A map whose changes are committed together: Spark's map state, or a dict in tests."""

    def get(self, name: str) -> bytes | None:
        """The bytes under `name`, None if there are none."""

    def put(self, name: str, value: bytes) -> None:
        """Store bytes under `name`."""

    def remove(self, name: str) -> None:
        """Remove `name`."""


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
    batch = batch.replace_schema_metadata({b"tamis.format": FORMAT})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _read(blob: bytes) -> Any:
    with pa.ipc.open_stream(blob) as reader:
        found = (reader.schema.metadata or {}).get(b"tamis.format")
        if found != FORMAT:
            raise RefusedError(
                f"the state has format {found!r}; this joiner reads {FORMAT!r}",
                hint="start with a new checkpoint",
            )
        return reader.read_next_batch()


class PendingRecords:
    """Records that wait for a plan: one value of the state for each batch that had any. `index` is as
    `to_json` returned it; `kind` is the beginning of the names in the state.
    """

    def __init__(self, index: Mapping[str, int] | None = None, kind: str = "parked") -> None:
        self._kind = kind
        self._counts = dict(index or {})  # number of records by name in the state

    def __len__(self) -> int:
        return sum(self._counts.values())

    def add(self, records: list[Records], state: StateMap) -> None:
        """Store records; those of a topic in the order of their offsets."""
        number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self._counts), default=0)
        name = f"{self._kind}/{number:08}"
        state.put(name, encode_records(records))
        self._counts[name] = sum(len(part.values) for part in records)

    def take_all(self, state: StateMap) -> list[Records]:
        """Remove and return all records, in the order in which they were added."""
        waiting = [records for name in self._counts for records in decode_records(state.get(name) or b"")]
        for name in self._counts:
            state.remove(name)
        self._counts = {}
        return waiting

    def to_json(self) -> dict[str, int]:
        """The index of the stored records."""
        return self._counts

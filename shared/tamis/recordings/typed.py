"""A recording of one stream as typed columns, checked as an edge would check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, Mask, Vector
from tamis.planning.domains import domain_check
from tamis.query.model import StreamDef
from tamis.recordings.files import Format, read_rows
from tamis.recordings.rows import Rows
from tamis.recordings.values import Values, iso_text, values_of

# The column by which the tuples of several streams without time are interleaved.
ORDER = "_order"


@dataclass(frozen=True)
class Recording:
    """The usable tuples of a stream's recording in the order of its files.

    `columns` are by name; `late` marks tuples behind the watermark of those before them in their file, which
    stands for one shard; `given` has the TIMESTAMP columns as the files write them; `refused` counts the rows
    that an edge would put to the dead letters.
    """

    stream: StreamDef
    columns: dict[str, Vector]
    late: Mask
    given: Mapping[str, pa.ChunkedArray]
    refused: int
    order: NDArray[np.int64] | None = None  # the column `_order`, where the files have one
    files: tuple[int, ...] = ()  # how many tuples each file has; () where there is one

    def __len__(self) -> int:
        return len(self.late)

    @property
    def reached(self) -> NDArray[np.int64]:
        """Of each tuple the greatest event time of its file so far. Only of a stream with time."""
        assert self.stream.time is not None
        times = self.columns[self.stream.time].data
        parts = np.split(times, np.cumsum(self.files)[:-1]) if self.files else [times]
        return np.concatenate([np.maximum.accumulate(part) for part in parts])

    def under(self, alias: str) -> dict[tuple[str, str], Vector]:
        """The columns as a source of a query sees them."""
        return {(alias, name): vector for name, vector in self.columns.items()}


def read_recording(stream: StreamDef, paths: Sequence[str], form: Format | None = None) -> Recording:
    """Read the files of one stream, one after the other.

    Raises InputError for what is wrong with a file as a whole: a missing column, a value that isn't of its
    column's type. A row outside the domain, with a number that isn't finite, or with NULL where none may be
    is left out and counted.
    """
    parts = [_read(stream, path, form) for path in paths]
    columns = {c.name: Vector.concat([part.columns[c.name] for part in parts]) for c in stream.columns}
    given = {name: _together([part.given[name] for part in parts], columns[name]) for name in parts[0].given}
    late = np.concatenate([part.late for part in parts])
    orders = [part.order for part in parts if part.order is not None]
    if orders and any(part.order is None and len(part) for part in parts):
        hint = f"give all files of stream {stream.name} a column {ORDER}, or none"
        raise InputError(f"some files have a column {ORDER} and some have none", where=paths[0], hint=hint)
    order = np.concatenate(orders) if orders else None
    files = tuple(len(part) for part in parts)
    return Recording(stream, columns, late, given, sum(part.refused for part in parts), order, files)


def _read(stream: StreamDef, path: str, form: Format | None) -> Recording:
    rows = read_rows(path, form)
    found = {column.name: values_of(rows, column.name, column.type) for column in stream.columns}
    keep = _usable(stream, found, len(rows))
    columns = {name: values.vector.take(keep) for name, values in found.items()}
    given = {name: v.given.filter(pa.array(keep)) for name, v in found.items() if v.given is not None}
    order = _order(rows, keep) if ORDER in rows.names else None
    return Recording(stream, columns, _late(stream, columns), given, int((~keep).sum()), order)


def _order(rows: Rows, keep: Mask) -> NDArray[np.int64]:
    found = values_of(rows, ORDER, Type.BIGINT).vector
    if found.null is not None:
        raise InputError(
            "no place in the order",
            where=rows.place(ORDER, int(np.argmax(found.null))),
        )
    return np.asarray(found.data[keep], np.int64)


def _together(parts: Sequence[pa.ChunkedArray], ticks: Vector) -> pa.ChunkedArray:
    """One column of several files; in ISO 8601 where they don't agree on how times are written."""
    if len({part.type for part in parts}) == 1:
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pa.chunked_array([iso_text(pa.array(ticks.data, mask=ticks.null))])


def _usable(stream: StreamDef, found: Mapping[str, Values], rows: int) -> Mask:
    keep = np.ones(rows, np.bool_)
    columns: Columns = {("", name): values.vector for name, values in found.items()}
    for column in stream.columns:
        keep &= ~found[column.name].unusable
        null = found[column.name].vector.null
        if null is not None and (column.not_null or column.name == stream.time):
            keep &= ~null
        check = domain_check(column)
        if check is not None:
            verdict = evaluate(check, columns, rows)
            # A CHECK is broken only where it is false: NULL is admitted, as in SQL.
            keep &= verdict.data if verdict.null is None else verdict.data | verdict.null
    return keep


def _late(stream: StreamDef, columns: Mapping[str, Vector]) -> Mask:
    if stream.time is None:
        return np.zeros(len(next(iter(columns.values()))), np.bool_)
    times = columns[stream.time].data
    if not len(times):
        return np.zeros(0, np.bool_)
    before = np.concatenate([times[:1], np.maximum.accumulate(times)[:-1]])
    return np.asarray(times < before - stream.delay)

"""The streams and static relations of a query, with what is known of them before anything comes.

A static relation is read when the query is planned, and then stands among the streams as one without time
that has the limits of its values as a CHECK.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tamis.errors import InputError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query.model import Catalog, ColumnDef, Query, StreamDef, TableDef
from tamis.query.reach import Reach
from tamis.recordings import format_of
from tamis.recordings.typed import Recording, read_recording

# A static relation is read whole, and kept whole by every evaluator.
MOST_BYTES = 1 << 28
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Ground:
    """`catalog` has all that the query reads as streams; `relations` are the rows of tables by name."""

    catalog: Catalog
    relations: Mapping[str, Recording]


def ground(query: Query, catalog: Catalog) -> Ground:
    """What a query reads.

    Raises InputError where a file of a static relation can't be read, is too large, or has rows that its
    table doesn't admit; RefusedError where it lies outside of the catalogue's reach.
    """
    streams: dict[str, StreamDef] = {}
    relations: dict[str, Recording] = {}
    for name in dict.fromkeys(source.stream for source in query.sources):
        if name in catalog.tables:
            relations[name] = _read(catalog.tables[name], catalog.reach)
            streams[name] = _limited(relations[name])
        else:
            streams[name] = catalog.streams[name]
    return Ground(replace(catalog, streams=streams), relations)


def _read(table: TableDef, reach: Reach) -> Recording:
    where = f"table {table.name}, path {table.path}"
    path = reach.resolved(table.path, where)
    try:
        found = os.stat(path)
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror}", where=where, hint="paths begin at the working directory"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise InputError("isn't a file", where=where, hint="name a CSV or Parquet file")
    if found.st_size > MOST_BYTES:
        hint = "keep what the queries need, or send its rows as a stream"
        raise InputError(f"the file is larger than {MOST_BYTES >> 20} MiB", where=where, hint=hint)
    return _rows(table, path, (found.st_mtime_ns, found.st_size, found.st_ino))


@functools.lru_cache(maxsize=4)
def _rows(table: TableDef, path: str, _version: tuple[int, int, int]) -> Recording:
    """The rows of a file, read once for a query that is explained, decided and compiled."""
    where = f"table {table.name}, path {table.path}"
    form = format_of(table.path)  # what a link leads to may be named otherwise
    found = read_recording(StreamDef(table.name, table.columns, None, 0), [path], form)
    if found.refused:
        hint = "mend the rows, or the CHECK and NOT NULL of the table"
        raise InputError(f"{found.refused} rows aren't what the table admits", where=where, hint=hint)
    if len(found) > MOST_ROWS:
        hint = "keep what the queries need, or send its rows as a stream"
        raise InputError(f"the file has more than {MOST_ROWS} rows", where=where, hint=hint)
    return found


def _limited(found: Recording) -> StreamDef:
    """A relation as a stream, with the limits of its whole numbers."""
    columns = []
    for column in found.stream.columns:
        vector = found.columns[column.name]
        data = vector.data if vector.null is None else vector.data[~vector.null]
        check = column.check
        if column.type in (Type.INT, Type.BIGINT, Type.TIMESTAMP) and len(data):
            own = Column("", column.name, column.type)
            low, high = Literal(int(np.min(data)), column.type), Literal(int(np.max(data)), column.type)
            check = _both(check, Call(">=", (own, low), Type.BOOLEAN), Call("<=", (own, high), Type.BOOLEAN))
        columns.append(ColumnDef(column.name, column.type, False, vector.null is None, check))
    return replace(found.stream, columns=tuple(columns))


def _both(check: Expr | None, *more: Expr) -> Expr:
    return Call("and", more if check is None else (check, *more), Type.BOOLEAN)

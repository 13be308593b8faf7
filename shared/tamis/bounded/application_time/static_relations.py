"""Static relations: the tables of a query are read when it is planned, and count as streams without time.

The limits of a table's values become CHECKs of that stream.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tamis.declarations.definitions import ColumnDef, TableDef
from tamis.declarations.file_access import FileAccess
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query.model import Catalog, Query
from tamis.recordings.files import format_of
from tamis.recordings.typed import Recording, read_recording

# Every evaluator keeps the whole relation; `FileAccess` limits the bytes of its file.
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class QueryInputs:
    """The streams and static relations that a query reads. `catalog` has all of them as streams; `relations`
    has the rows of tables by name.
    """

    catalog: Catalog
    relations: Mapping[str, Recording]


def query_inputs(query: Query, catalog: Catalog) -> QueryInputs:
    """Read the tables of a query.

    Raises InputError if a file can't be read, is too large, or has rows that violate its table's
    declaration; RefusedError where it lies outside of the catalogue's reach.
    """
    streams: dict[str, StreamDef] = {}
    relations: dict[str, Recording] = {}
    for name in dict.fromkeys(source.stream for source in query.sources):
        if name in catalog.tables:
            relations[name] = _read(catalog.tables[name], catalog.file_access)
            streams[name] = _limited(relations[name])
        else:
            streams[name] = catalog.streams[name]
    return QueryInputs(replace(catalog, streams=streams), relations)


def _read(table: TableDef, file_access: FileAccess) -> Recording:
    where = f"table {table.name}, path {table.path}"
    path = file_access.resolve(table.path, where)
    found = os.stat(path)
    return _rows(table, path, (found.st_mtime_ns, found.st_size, found.st_ino))


@functools.lru_cache(maxsize=4)
def _rows(table: TableDef, path: str, _version: tuple[int, int, int]) -> Recording:
    """The rows of a file, read once for a query that is explained, decided and compiled."""
    where = f"table {table.name}, path {table.path}"
    form = format_of(table.path)  # a link's target may have another name
    found = read_recording(StreamDef(table.name, table.columns, None, 0), [path], form)
    if found.refused:
        hint = "mend the rows, or the CHECK and NOT NULL of the table"
        what = "1 row violates" if found.refused == 1 else f"{found.refused} rows violate"
        first = found.refusals[0]
        raise InputError(
            f"{what} the declaration of the table: {first.where}: {first.reason}", where=where, hint=hint
        )
    if len(found) > MOST_ROWS:
        hint = "keep what the queries need, or send its rows as a stream"
        raise InputError(f"the file has more than {MOST_ROWS} rows", where=where, hint=hint)
    return found


def _limited(found: Recording) -> StreamDef:
    """A relation as a stream, with the limits of its whole numbers as CHECKs."""
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

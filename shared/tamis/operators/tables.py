"""Static relations: the rows of a table's file, as they were when its query was proven."""

from __future__ import annotations

import functools
import hashlib
import os

import orjson

from tamis.declarations.definitions import ColumnDef, TableDef
from tamis.declarations.file_access import FileAccess
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError, RefusedError
from tamis.identity_cache import IdentityCache
from tamis.plan.nodes import Table
from tamis.recordings.files import format_of
from tamis.recordings.typed import Recording, read_recording

# Every operator keeps the whole relation; `FileAccess` limits the bytes of its file.
MOST_ROWS = 1_000_000
# Tables whose rows are remembered.
_TABLES = 4


def table_rows(table: Table, file_access: FileAccess) -> Recording:
    """The rows of a table of a plan.

    Raises InputError as `read_table`, and RefusedError if the rows aren't those of the plan: the limits of
    their values are part of it.
    """
    columns = tuple(
        ColumnDef(one.name, one.type, not_null=one.not_null, check=one.check) for one in table.columns
    )
    rows = read_table(TableDef(table.name, columns, table.path), file_access)
    if digest(rows) != table.digest:
        raise RefusedError(
            "the file has other rows than those with which the query was proven",
            where=f"table {table.name}, path {table.path}",
            hint="restore the file, or drop the alert and create it again",
        )
    return rows


def digest(rows: Recording) -> str:
    """A number of all values of a relation, as text. It is computed once for rows that are read once: each
    partition of the joiner asks for it.
    """
    return _DIGESTS.one(rows, lambda: _digest(rows))


_DIGESTS = IdentityCache[str](_TABLES)


def _digest(rows: Recording) -> str:
    values = [[name, vector.to_list()] for name, vector in sorted(rows.columns.items())]
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def read_table(table: TableDef, file_access: FileAccess) -> Recording:
    """Read the rows of a table.

    Raises InputError if the file can't be read, is too large, or has rows that violate the declaration;
    RefusedError where it lies outside of the permitted directories.
    """
    where = f"table {table.name}, path {table.path}"
    path = file_access.resolve(table.path, where)
    status = os.stat(path)
    return _rows(table, path, (status.st_mtime_ns, status.st_size, status.st_ino))


@functools.lru_cache(maxsize=_TABLES)
def _rows(table: TableDef, path: str, _version: tuple[int, int, int]) -> Recording:
    """The rows of a file, read once for a query that is explained, decided and compiled."""
    where = f"table {table.name}, path {table.path}"
    form = format_of(table.path)  # a link's target may have another name
    recording = read_recording(StreamDef(table.name, table.columns, None, 0), [path], form)
    if recording.refused:
        hint = "mend the rows, or the CHECK and NOT NULL of the table"
        what = "1 row violates" if recording.refused == 1 else f"{recording.refused} rows violate"
        first = recording.refusals[0]
        raise InputError(
            f"{what} the declaration of the table: {first.where}: {first.reason}", where=where, hint=hint
        )
    if len(recording) > MOST_ROWS:
        hint = "keep what the queries need, or send its rows as a stream"
        raise InputError(f"the file has more than {MOST_ROWS} rows", where=where, hint=hint)
    return recording

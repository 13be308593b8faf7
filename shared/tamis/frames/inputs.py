"""SQL and frames as the functions of `import tamis` take them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa

from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.frames.arrow_tables import Frame, FrameRows, frame_rows, warn
from tamis.offline.recordings import read_recordings
from tamis.offline.statements import parsed
from tamis.offline.wording import FUNCTION
from tamis.query.model import AlertDef, Catalog, DerivedDef, Statement
from tamis.recordings.times import PER_SECOND, TimeUnit
from tamis.recordings.typed import Recording, recording_of
from tamis.wording.file_text import encoding_problem
from tamis.wording.names import normalized_name

Sql = str | os.PathLike[str]
"""Statements: their text, or the path of a file with them as `pathlib.Path`."""

Frames = Mapping[str, Frame | Sequence[Frame]]
"""Frames by the name of their stream. Each frame of a list is a source of its own, as each file of a stream
on the command line."""


def statements_of(sql: Sql) -> tuple[Catalog, list[Statement]]:
    """The statements, and the catalogue after all of them. Raises SqlErrors with every mistake."""
    if isinstance(sql, str):
        if _is_path(sql):
            hint = f"give pathlib.Path({sql.strip()!r}) to read the statements of a file"
            raise InputError("this text is the path of a file, and no statements", where="sql", hint=hint)
        return parsed(sql, None, warn)
    if not isinstance(sql, os.PathLike):
        raise InputError(f"{sql!r:.60} is no SQL", where="sql", hint="give text, or a pathlib.Path of a file")
    name = os.fspath(sql)
    try:
        data = Path(name).read_bytes()
        return parsed(data.decode("utf-8-sig"), name, warn)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=name) from error
    except UnicodeDecodeError as error:
        problem = encoding_problem(data)
        hint = "save it as UTF-8" if problem is None else problem[1]
        raise InputError(f"is not UTF-8 at byte {error.start}", where=name, hint=hint) from error


def _is_path(text: str) -> bool:
    """True for text that names a file of SQL. No statement is a single word that ends so."""
    return text.strip().lower().endswith(".sql") and len(text.strip().splitlines()) == 1 and ";" not in text


def check_query(query: object) -> None:
    """Raise InputError if the name of a query is given and is no text."""
    if query is not None and not isinstance(query, str):
        raise InputError(f"{query!r} is no name of a query", where="query", hint="give its name as text")


def name_of(sql: Sql) -> str:
    """The name of the statements in messages."""
    return "sql" if isinstance(sql, str) else os.fspath(sql)


def recordings_of(
    catalog: Catalog,
    queries: Sequence[AlertDef | DerivedDef],
    frames: Frames,
    unit: TimeUnit | None,
    *,
    complete: bool = True,
    as_arrived: bool = False,
) -> dict[str, Recording]:
    """The recordings of all streams that the queries read, by stream. `unit`: that of times which are
    numbers; None: the stream's own. `complete`: each stream must have a frame. `as_arrived`: rows are
    in the order of their arrival.

    Raises InputError, which names the frame, the column and the row.
    """
    if unit is not None and unit not in PER_SECOND:
        raise InputError(f"unknown unit {unit!r}", where="time_unit", hint=f"give {', '.join(PER_SECOND)}")
    _check_mapping(frames)
    known = {**catalog.streams, **catalog.derived, **catalog.tables}
    given: dict[str, list[FrameRows]] = {}
    for key, one in frames.items():
        name = normalized_name(key, known)
        if name in given:
            raise InputError(f"stream {name} is there twice", where="frames", hint="give a list of frames")
        listed = _listed(one)
        if not listed:
            raise InputError("the list of frames is empty", where=f"frame {name}", hint="give a frame")
        given[name] = [
            frame_rows(part, f"frame {name}" if len(listed) == 1 else f"frame {name}[{number}]")
            for number, part in enumerate(listed)
        ]

    def read(stream: StreamDef, files: list[FrameRows]) -> Recording:
        if unit is None and stream.time_unit is None:
            for rows in files:
                _check_units(stream, rows)
        return recording_of(stream, files, unit, absent_is_null=True, as_arrived=as_arrived)

    return read_recordings(catalog, queries, given, read, wording=FUNCTION, notify=warn, complete=complete)


def _check_mapping(frames: object) -> None:
    if not isinstance(frames, Mapping):
        hint = 'give a mapping from streams to frames: {"STREAM": frame}'
        raise InputError(f"{type(frames).__name__} is no mapping", where="frames", hint=hint)
    for key in frames:
        if not isinstance(key, str):
            raise InputError(f"{key!r} is no name of a stream", where="frames", hint="give its name as text")


def _listed(one: Frame | Sequence[Frame]) -> Sequence[Frame]:
    # A frame may be a sequence, too; only these two are lists of frames.
    return one if isinstance(one, list | tuple) else [cast(Frame, one)]


def _check_units(stream: StreamDef, rows: FrameRows) -> None:
    """Refuse times that are numbers: their unit isn't known. Libraries convert dates to numbers of different
    units.
    """
    for column in stream.columns:
        if column.type is not Type.TIMESTAMP or not rows.has(column.name):
            continue
        kind = rows.column(column.name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            raise InputError(
                f"the times are numbers ({kind}) of an unknown unit",
                where=f"{rows.where}, column {column.name}",
                hint="give the argument time_unit ('s', 'ms', 'us' or 'ns'), declare time_unit in CREATE "
                "STREAM, or give datetimes",
            )

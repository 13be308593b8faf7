"""Arrow tables from frames of any library, by Arrow's C interfaces, and notices on frames as warnings."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InputError
from tamis.recordings.rows import ArrowRows


class ArrowStream(Protocol):
    """A table with Arrow's C stream interface: of pandas 2.2, Polars 1.3, PyArrow 14, DuckDB or others."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule with a stream of record batches."""


Frame = ArrowStream


class FrameRows(ArrowRows):
    """Rows of a frame. Messages count them from 0, as the libraries do."""

    def __init__(self, table: pa.Table, where: str) -> None:
        super().__init__(table, where, textual=False)

    def place(self, column: str, row: int) -> str:
        return f"{self.where}, column {column}, row {row} (from 0)"


def frame_rows(frame: Frame, where: str) -> FrameRows:
    """The rows of a frame; `where` names it in messages. Raises InputError if it is no frame."""
    return FrameRows(arrow_table(frame, where), where)


def arrow_table(frame: Frame, where: str) -> pa.Table:
    """The frame as an Arrow table, its columns in types that Tamis reads: text as `string`, and values
    instead of dictionaries and of run-end encodings.

    Raises InputError if it is no frame, or if a column can't be converted to Arrow.
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        name = f"{type(frame).__module__}.{type(frame).__qualname__}"
        lazy = callable(getattr(frame, "collect", None))
        raise InputError(
            f"{name} has no Arrow stream (__arrow_c_stream__)",
            where=where,
            hint="evaluate it first, with .collect()"
            if lazy
            else "give a frame of pandas 2.2 or Polars 1.3 or newer, or an Arrow table",
        )
    try:
        table = pa.RecordBatchReader.from_stream(frame).read_all()
    except _NOT_CONVERTED as error:
        raise _no_arrow(frame, where, error) from error
    columns = [_readable(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


# Libraries raise each of these for columns that they can't convert; OverflowError is for whole numbers of
# more than 64 bits.
_NOT_CONVERTED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _no_arrow(frame: Any, where: str, error: Exception) -> InputError:
    """The error of a frame that its library can't convert. It names the column, where only one fails."""
    names = list(getattr(frame, "columns", ()))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return InputError(f"two columns {twice}", where=where, hint="rename one of them")
    for name in names:
        try:
            pa.RecordBatchReader.from_stream(frame[[name]]).read_all()
        except _NOT_CONVERTED as of_column:
            error, where = of_column, f"{where}, column {name}"
            break
    if isinstance(error, OverflowError):
        hint = "give numbers of at most 64 bits, or floats"
        return InputError("a whole number has more than 64 bits", where=where, hint=hint)
    # Further parts name the column again.
    what = str(error.args[0]) if error.args else str(error)
    return InputError(what, where=where, hint="give each column one type that Arrow has, or cast it")


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _readable(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return _readable(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind):
        # Arrow can't look up views of text in a dictionary.
        text = _is_text(kind.value_type)
        chunks = [
            pa.DictionaryArray.from_arrays(
                chunk.indices, chunk.dictionary.cast(pa.string()) if text else chunk.dictionary
            ).dictionary_decode()
            for chunk in column.chunks
        ]
        return _readable(pa.chunked_array(chunks, pa.string() if text else kind.value_type))
    if _is_text(kind):
        return column.cast(pa.string())
    return column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class TamisWarning(UserWarning):
    """Something about a frame that the caller should know, such as rows that an edge would refuse."""


def warn(notice: str) -> None:
    """Give a notice as a warning at the line outside of Tamis that called one of its functions."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tamis."):
        frame, level = frame.f_back, level + 1
    warnings.warn(notice.removeprefix("warning: "), TamisWarning, stacklevel=level)

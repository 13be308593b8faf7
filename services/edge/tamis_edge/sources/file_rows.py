"""Rows of a recording in blocks, from CSV, NDJSON or Parquet, and the check that it can be read.

A line that isn't a row becomes a dead letter; the rows after it are still read. Text of a CSV cell becomes
the value that JSON would have had. If it doesn't fit the column's type, it remains text, which the type check
then reports.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.recordings.files import EXTENSIONS
from tamis.wording.file_text import (
    SAMPLE,
    binary_problem,
    encoding_problem,
    first_cells,
    separator_hint,
    wide_encoding,
)
from tamis_edge.sources.base import READ_BYTES, Delivery, Payloads, RawColumns, payloads


def typed(cells: Sequence[str | None], type_: Type) -> Sequence[Any]:
    """The values of one column. The caller has already replaced empty cells by None.

    >>> typed(["1.5", None, "x"], Type.DOUBLE)
    [1.5, None, 'x']
    """
    if type_ is Type.VARCHAR:
        return cells
    if type_ is Type.BOOLEAN:
        return [None if cell is None else _BOOLEANS.get(cell.lower(), cell) for cell in cells]
    parse: Callable[[str], Any] = float if type_ is Type.DOUBLE else _number
    try:
        return [None if cell is None else parse(cell) for cell in cells]
    except ValueError:
        return [_try(parse, cell) for cell in cells]


_BOOLEANS = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}


def _number(cell: str) -> int | float:
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _try(parse: Callable[[str], Any], cell: str | None) -> Any:
    if cell is None:
        return None
    try:
        return parse(cell)
    except ValueError:
        return cell


def csv_blocks(path: Path, types: Mapping[str, Type], size: int) -> Iterator[Delivery]:
    """Blocks of at most `size` rows, numbered from 0. Cells have the types that `types` gives for their
    columns.

    A line with another number of cells than the header, or with bytes that aren't UTF-8, is delivered
    unchanged and separately; no decoder accepts it. An empty line is not a row; an empty cell is NULL.
    """
    # Undecodable bytes survive as surrogates, so that the line can become a dead letter unchanged.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        taken: list[str] = []
        reader = csv.reader(_noted(file, taken))
        names = next(reader, [])
        taken.clear()
        rows: list[list[str]] = []
        first = length = 0
        for cells in _rows(reader):
            line = "".join(taken)
            taken.clear()
            if cells == []:
                continue
            if cells is None or len(cells) != len(names) or not _is_text(line):
                if rows:
                    yield _block(names, rows, types, first, length)
                first, rows, length = first + len(rows), [], 0
                yield payloads(first, 0, [line.rstrip("\r\n").encode("utf-8", "surrogateescape")])
                first += 1
                continue
            rows.append(cells)
            length += len(line)
            if len(rows) == size:
                yield _block(names, rows, types, first, length)
                first, rows, length = first + size, [], 0
        if rows:
            yield _block(names, rows, types, first, length)


def _noted(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str] | None]:
    """The reader's rows; None for one that it can't read, such as a quote that is never closed."""
    while True:
        try:
            yield next(reader)
        except csv.Error:
            yield None
        except StopIteration:
            return


def _is_text(line: str) -> bool:
    if line.isascii():
        return True
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _block(
    names: Sequence[str], rows: Sequence[Sequence[str]], types: Mapping[str, Type], first: int, length: int
) -> RawColumns:
    columns = {}
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        values: list[str | None] = [cell or None for cell in cells]
        type_ = types.get(name)
        columns[name] = values if type_ is None else typed(values, type_)
    return RawColumns(np.arange(first, first + len(rows)), np.zeros(len(rows), np.int64), columns, length)


BLOCK = 10_000  # rows decoded ahead; a paced replay sends them in parts


def format_of(path: Path) -> str:
    """The format that a file's suffix names. Raises InputError for an unknown suffix."""
    try:
        return EXTENSIONS[path.suffix.lower()]
    except KeyError:
        raise InputError(
            f"unknown suffix {path.suffix!r}", where=str(path), hint="set `format` to csv, ndjson or parquet"
        ) from None


def check(path: Path, form: str, source: str) -> None:
    """Raises InputError if a file can't be read, or obviously isn't of its format."""
    hint = f"correct the path of source {source!r}, or let the edge's user read it"
    try:
        if path.exists() and not path.is_file():
            raise InputError("it is no file", where=str(path), hint=f"correct the path of source {source!r}")
        with path.open("rb") as file:
            if form == "parquet":
                pa.parquet.ParquetFile(file)
            else:
                _check_text(file, form, path)
    except OSError as error:
        if set("*?[") & set(str(path)) and not path.exists():
            hint = f"a path names one file, and is no pattern; add a source for each file to {source!r}"
        raise InputError(f"can't be read: {error.strerror or error}", where=str(path), hint=hint) from error
    except pa.ArrowException as error:
        raise InputError(
            f"isn't Parquet: {error}", where=str(path), hint=f"correct the `format` of source {source!r}"
        ) from error


def _check_text(file: BinaryIO, form: str, path: Path) -> None:
    """Raises InputError if a file is no text in UTF-8, or if its cells aren't separated by commas."""
    beginning = file.read(SAMPLE)
    problem = encoding_problem(beginning, cut=True)
    if problem is not None and (binary_problem(beginning) or wide_encoding(beginning)) is not None:
        raise InputError(problem[0], where=str(path), hint=problem[1])
    header = first_cells(beginning)
    separated = separator_hint(header) if form == "csv" else None
    if separated is not None:
        raise InputError(f"its one column is {header[0]!r:.80}", where=str(path), hint=separated)


def read(path: Path, form: str, types: dict[str, Type], offset: int) -> Iterator[Delivery]:
    """The rows from number `offset` on (from 0). Cells of CSV have the types that `types` gives for their
    columns.

    Raises InputError if the rest of the file can't be read.
    """
    return _skip(_read(path, form, types), offset)


def _read(path: Path, form: str, types: dict[str, Type]) -> Iterator[Delivery]:
    """All of the rows, in blocks."""
    first = 0
    try:
        if form == "ndjson":
            with path.open("rb") as lines:
                block: list[bytes] = []
                size = 0
                for line in lines:
                    block.append(line.rstrip(b"\r\n"))
                    size += len(line)
                    if len(block) == BLOCK or size >= READ_BYTES:
                        yield payloads(first, 0, block)
                        first, block, size = first + len(block), [], 0
                if block:
                    yield payloads(first, 0, block)
            return
        if form == "csv":
            yield from csv_blocks(path, types, BLOCK)
            return
        for batch in pa.parquet.ParquetFile(path).iter_batches(BLOCK):
            n = batch.num_rows
            named = zip(batch.schema.names, batch.columns, strict=True)
            columns = {name: _readable(column).to_pylist() for name, column in named}
            yield RawColumns(np.arange(first, first + n), np.zeros(n, np.int64), columns, batch.nbytes)
            first += n
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"can't be read after row {first}: {error}", where=str(path)) from error


def _readable(column: Any) -> Any:
    """A column with the values that a decoder reads: times as text, and decimals as floats."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.string())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        return pa.StructArray.from_arrays(
            [_readable(field) for field in column.flatten()], names, mask=column.is_null()
        )
    return column


def _skip(blocks: Iterator[Delivery], offset: int) -> Iterator[Delivery]:
    for block in blocks:
        if int(block.offsets[-1]) >= offset:
            yield part(block, max(0, offset - int(block.offsets[0])), len(block.offsets), 0)


def part(block: Delivery, start: int, end: int, arrival: int) -> Delivery:
    """The rows `start` to `end` of a block, arrived at `arrival` (wall clock, microseconds)."""
    offsets = block.offsets[start:end]
    arrivals = np.full(end - start, arrival, np.int64)
    if isinstance(block, Payloads):
        return replace(block.part(start, end), arrivals=arrivals)
    assert isinstance(block, RawColumns)
    columns = {name: values[start:end] for name, values in block.columns.items()}
    return RawColumns(offsets, arrivals, columns, block.size * (end - start) // len(block.offsets))

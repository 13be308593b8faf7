"""Rows of a recording in blocks, from CSV, NDJSON or Parquet, and the check that it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.query.file_text import (
    SAMPLE,
    binary_problem,
    encoding_problem,
    first_cells,
    separator_hint,
    wide_encoding,
)
from tamis.recordings.files import EXTENSIONS
from tamis_edge.sources.base import READ_BYTES, Delivery, Payloads, RawColumns, payloads
from tamis_edge.sources.file.csv_rows import csv_blocks

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

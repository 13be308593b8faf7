"""Read and write rows of CSV, NDJSON and Parquet files; `-` is standard input or output."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tamis.errors import InputError
from tamis.printable import printable_csv, printable_json
from tamis.recordings.json_structure import ComplexityError, loads
from tamis.recordings.rows import ArrowRows, JsonRows, Rows
from tamis.wording.file_text import (
    binary_problem,
    encoding_problem,
    first_cells,
    separator_hint,
    wide_encoding,
)

Format = Literal["csv", "ndjson", "parquet"]

EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}

# Endings of files that hold others, and how to get these.
_PACKED = {
    ".gz": "unpack it first with gunzip",
    ".zst": "unpack it first with unzstd",
    ".bz2": "unpack it first with bunzip2",
    ".xz": "unpack it first with unxz",
    ".zip": "unpack it first with unzip",
    ".xlsx": "save the sheet as CSV in UTF-8",
}


def format_of(path: str, form: Format | None = None) -> Format:
    """The format by the file's extension; `form` is the format of standard input and output, and of names
    without a known extension.
    """
    known = EXTENSIONS.get(Path(path).suffix.lower()) or form
    if known is None:
        raise InputError(
            "the format can't be determined from the name",
            where=_display_name(path),
            hint=_PACKED.get(Path(path).suffix.lower(), "give it by --format csv, ndjson or parquet"),
        )
    return known


def read_rows(path: str, form: Format | None = None) -> Rows:
    """The rows of a file. Raises InputError if it can't be read or isn't of its format."""
    known, where = format_of(path, form), _display_name(path)
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=where) from error
    if known != "parquet" and (binary_problem(data) or wide_encoding(data)) is not None:
        raise _of_encoding(data, where)
    try:
        if known == "csv":
            return _csv(data, where)
        if known == "ndjson":
            return _ndjson(data, where)
        return ArrowRows(pyarrow.parquet.read_table(io.BytesIO(data)), where, textual=False)
    except pa.ArrowException as error:
        if known == "csv" and encoding_problem(data) is not None:
            raise _of_encoding(data, where) from error
        separated = separator_hint(first_cells(data)) if known == "csv" else None
        hint = separated or f"it is read as {known}"
        raise InputError(str(error).strip(), where=where, hint=hint) from error


def _of_encoding(data: bytes, where: str) -> InputError:
    what, hint = encoding_problem(data) or ("it can't be read as text", "save it as UTF-8")
    return InputError(what, where=where, hint=hint)


def write_rows(rows: Rows, path: str, form: Format | None = None) -> None:
    """Write rows of one file to another. NDJSON keeps its lines, and CSV the text of its cells."""
    known = format_of(path, form)
    if known == "ndjson" and isinstance(rows, JsonRows):
        data = b"".join(line + b"\n" for line in rows.lines)
        _write_to(path, lambda sink: sink.write(data), known)
    else:
        table = rows.table()
        if rows.textual and known != "csv":
            table = pa.table({name: _as_numbers(table[name]) for name in table.column_names})
        write_table(table, path, known)


def _as_numbers(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text cells as numbers, if all of them are numbers."""
    for target in (pa.int64(), pa.float64()):
        try:
            return cells.cast(target)
        except pa.ArrowInvalid:
            continue
    return cells


def write_table(table: pa.Table, path: str, form: Format | None = None) -> None:
    """Write a table. CSV is quoted only where necessary."""
    known = format_of(path, form)
    _write_to(path, lambda sink: _write(table, sink, known), known)


def _csv(data: bytes, where: str) -> Rows:
    # Cells stay text, so that 007 is written as it was read. One thread, or messages wouldn't name the row.
    read = pyarrow.csv.ReadOptions(use_threads=False)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with pyarrow.csv.open_csv(io.BytesIO(data), read_options=read, parse_options=parse) as beginning:
        names = beginning.schema.names
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    table = pyarrow.csv.read_csv(
        io.BytesIO(data), read_options=read, parse_options=parse, convert_options=convert
    )
    return ArrowRows(table, where, textual=True)


def _display_name(path: str) -> str:
    return "standard input" if path == "-" else path


def _write_to(path: str, write: Callable[[BinaryIO], object], form: Format) -> None:
    if path == "-" and sys.stdout.isatty():
        _show(write, form)
        return
    if path == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with Path(path).open("wb") as sink:
            write(sink)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=path) from error


def _show(write: Callable[[BinaryIO], object], form: Format) -> None:
    """Write to a terminal, which obeys escape sequences: the same rows in printable characters."""
    if form == "parquet":
        raise InputError("Parquet is no text", where="standard output", hint="name a file with -o")
    content = io.BytesIO()
    write(content)
    text = content.getvalue().decode(errors="backslashreplace")
    sys.stdout.write(printable_json(text) if form == "ndjson" else printable_csv(text))
    sys.stdout.flush()


def _ndjson(data: bytes, where: str) -> Rows:
    objects, kept, numbers = [], [], []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = loads(line)
        except orjson.JSONDecodeError as error:
            if encoding_problem(line) is not None:
                raise _of_encoding(data, where) from error
            raise InputError(f"not JSON: {error}", where=f"{where}, line {number}") from error
        except ComplexityError as error:
            raise InputError(error.what, where=f"{where}, line {number}") from error
        if not isinstance(one, dict):
            raise InputError(
                "not a JSON object", where=f"{where}, line {number}", hint="write one object a line"
            )
        objects.append(one)
        kept.append(line)
        numbers.append(number)
    return JsonRows(objects, kept, numbers, where)


def _write(table: pa.Table, sink: BinaryIO, form: Format) -> None:
    if form == "csv":
        _write_csv(table, sink)
    elif form == "ndjson":
        for row in table.to_pylist():
            sink.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    else:
        pyarrow.parquet.write_table(table, sink)


def _write_csv(table: pa.Table, sink: BinaryIO) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    plain = _plain_csv(table)
    if plain is None:
        cells = [column.cast(pa.string()).to_pylist() for column in table.columns]
        writer.writerows(zip(*cells, strict=True))
    sink.write(text.getvalue().encode() + (plain or b""))


def _plain_csv(table: pa.Table) -> bytes | None:
    """The rows by Arrow's fast writer; None if a cell needs quotes, since Arrow would then quote all text,
    or where a single NULL would be an empty line.
    """
    if len(table.column_names) == 1:
        return None
    sink = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    try:
        pyarrow.csv.write_csv(table, sink, options)
    except pa.ArrowInvalid:
        return None
    return sink.getvalue()

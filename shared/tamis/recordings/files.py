"""Tables from and to CSV, NDJSON and Parquet, by extension; `-` is standard input or output."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import BinaryIO, Literal

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tamis.errors import InputError

Format = Literal["csv", "ndjson", "parquet"]

_EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: str, form: Format | None = None) -> Format:
    """The format that `form` names, or else the file's extension."""
    if form is not None:
        return form
    known = _EXTENSIONS.get(Path(path).suffix.lower())
    if known is None:
        raise InputError(
            "the format can't be told from the name",
            where=path,
            hint="name it with --format csv, ndjson or parquet",
        )
    return known


def read_table(
    path: str, form: Format | None = None, types: dict[str, pa.DataType] | None = None
) -> pa.Table:
    """The file as a table in the order of its rows. `types` fixes columns whose type must not be guessed."""
    known = format_of(path, form)
    try:
        source = io.BytesIO(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=path) from error
    try:
        if known == "csv":
            convert = pyarrow.csv.ConvertOptions(
                column_types=types or {}, strings_can_be_null=True, null_values=[""]
            )
            return pyarrow.csv.read_csv(source, convert_options=convert)
        if known == "ndjson":
            schema = pa.schema(list(types.items())) if types else None
            return pyarrow.json.read_json(source, parse_options=pyarrow.json.ParseOptions(schema))
        return pyarrow.parquet.read_table(source)
    except pa.ArrowException as error:
        raise InputError(str(error).strip(), where=path, hint=f"it is read as {known}") from error


def write_table(table: pa.Table, path: str, form: Format | None = None) -> None:
    """Write the table. CSV quotes only where it must."""
    known = format_of(path, form)
    if path == "-":
        _write(table, sys.stdout.buffer, known)
        sys.stdout.buffer.flush()
        return
    with Path(path).open("wb") as sink:
        _write(table, sink, known)


def _write(table: pa.Table, sink: BinaryIO, form: Format) -> None:
    if form == "csv":
        pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(quoting_style="needed"))
    elif form == "ndjson":
        for row in table.to_pylist():
            sink.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    else:
        pyarrow.parquet.write_table(table, sink)

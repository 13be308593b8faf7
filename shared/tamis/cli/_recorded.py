"""What `tamis run` and `tamis verify` take alike: a file of SQL, and recordings of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from tamis.cli._sql_file import STANDARD_INPUT
from tamis.errors import InputError
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.query.names import meant
from tamis.recordings import Format, Recording, read_recording

_Command = TypeVar("_Command", bound=Callable[..., Any])


def recorded(command: _Command) -> _Command:
    """Adds the arguments FILE.sql, --input and --format: `source`, `inputs` and `form`."""
    for decorate in (
        click.option(
            "--format",
            "form",
            type=click.Choice(["csv", "ndjson", "parquet"]),
            help="Format of standard input and output, and of files whose names say none.",
        ),
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="STREAM=FILE",
            help="A stream's recording; a stream may have several, each from a source of its own.",
        ),
        click.argument("source", metavar="FILE.sql"),
    ):
        command = decorate(command)
    return command


def files_of(inputs: Iterable[str], source: str, catalog: Catalog) -> dict[str, list[str]]:
    """The files of each stream that `--input` names. `source` is the SQL's: standard input is read once."""
    files: dict[str, list[str]] = {}
    known = {**catalog.streams, **catalog.derived, **catalog.tables}
    for one in inputs:
        stream, equals, path = one.partition("=")
        if not (stream and equals and path):
            raise InputError(f"{one!r} names no file", where="--input", hint="write STREAM=FILE")
        files.setdefault(meant(stream, known), []).append(path)
    if [source, *(path for paths in files.values() for path in paths)].count(STANDARD_INPUT) > 1:
        raise InputError("standard input can be read only once", where="--input")
    return files


def read_recordings(
    catalog: Catalog,
    queries: Sequence[AlertDef | DerivedDef],
    files: Mapping[str, Sequence[str]],
    form: Format | None,
) -> dict[str, Recording]:
    """The recordings of all streams that the queries read, by stream; says on standard error what an edge
    would have refused, and which recordings nobody reads.
    """
    readers: dict[str, str] = {}
    for query in queries:
        for one in query.query.sources:
            if one.stream not in catalog.tables:
                readers.setdefault(one.stream, query.name)
    for stream in files:
        if stream not in catalog.streams:
            raise InputError(
                _unknown(stream, catalog), where=f"--input {stream}=", hint=f"give {', '.join(readers)}"
            )
        if stream not in readers:
            asked = ", ".join(query.name for query in queries)
            click.echo(f"stream {stream}: its recording isn't read, nor is the stream by {asked}", err=True)
    for stream, query_name in readers.items():
        if stream not in files:
            raise InputError(
                f"no recording of stream {stream}, which {query_name} reads",
                where="--input",
                hint=f"add --input {stream}=FILE",
            )
    found = {}
    for stream in [one for one in files if one in readers]:
        paths = files[stream]
        recording = found[stream] = read_recording(catalog.streams[stream], paths, form)
        if recording.refused:
            what = "row" if recording.refused == 1 else "rows"
            click.echo(
                f"stream {stream}: {recording.refused} {what} left out, which an edge would put to the dead "
                "letters (outside the domain, not finite, or NULL where none may be)",
                err=True,
            )
    return found


def _unknown(stream: str, catalog: Catalog) -> str:
    if stream in catalog.derived:
        read = dict.fromkeys(source.stream for source in catalog.derived[stream].query.sources)
        base = f"stream{'s' if len(read) > 1 else ''} {' and '.join(read)}"
        return f"stream {stream} is made from {base} by a query, and is not recorded"
    if stream in catalog.tables:
        return f"{stream} is a table, whose rows are read from {catalog.tables[stream].path}"
    return f"there is no stream {stream}"

"""Recordings as input of `tamis run` and `tamis verify`: the shared options, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import click

from tamis.cli._sql_file import STANDARD_INPUT
from tamis.errors import InputError
from tamis.evaluation.watched_recording import watched_recording
from tamis.query.model import AlertDef, Catalog, DerivedDef, StreamDef
from tamis.query.names import normalized_name
from tamis.recordings.files import Format
from tamis.recordings.time_units import TimeUnit
from tamis.recordings.typed import Recording, read_recording

_Command = TypeVar("_Command", bound=Callable[..., Any])


def recording_options(command: _Command) -> _Command:
    """Add FILE.sql, --input, --time-unit and --format, as `source`, `inputs`, `unit` and `form`."""
    for decorate in (
        click.option(
            "--format",
            "form",
            type=click.Choice(["csv", "ndjson", "parquet"]),
            help="Format of standard input and output, and of files without a known extension.",
        ),
        click.option(
            "--time-unit",
            "unit",
            type=click.Choice(get_args(TimeUnit)),
            help="The unit of times that are numbers; they count from 1970. By default the time_unit of the "
            "stream, or us.",
        ),
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="STREAM=FILE",
            help="The recording of a stream; if a stream has several, each is a separate source.",
        ),
        click.argument("source", metavar="FILE.sql"),
    ):
        command = decorate(command)
    return command


def files_of(inputs: Iterable[str], source: str, catalog: Catalog) -> dict[str, list[str]]:
    """The files of each stream in `--input`. `source` is the file of SQL: only one may be standard input."""
    files: dict[str, list[str]] = {}
    known = {**catalog.streams, **catalog.derived, **catalog.tables}
    for one in inputs:
        stream, equals, path = one.partition("=")
        if not (stream and equals and path):
            raise InputError(f"{one!r} names no file", where="--input", hint="write STREAM=FILE")
        files.setdefault(normalized_name(stream, known), []).append(path)
    if [source, *(path for paths in files.values() for path in paths)].count(STANDARD_INPUT) > 1:
        raise InputError("standard input can be read only once", where="--input")
    return files


def read_recordings(
    catalog: Catalog,
    queries: Sequence[AlertDef | DerivedDef],
    files: Mapping[str, Sequence[str]],
    form: Format | None,
    unit: TimeUnit | None = None,
    *,
    complete: bool = True,
) -> dict[str, Recording]:
    """The recordings of all streams that the queries read, by stream. `unit` is the unit of times that are
    numbers; None: each stream's own. Watched streams have the columns of their watches. `complete`: each
    stream must have a recording.

    Writes to standard error how many rows an edge would have refused, which times are implausible, which
    columns files don't have, and which recordings no query reads.
    """
    readers: dict[str, str] = {}
    watched: dict[str, StreamDef] = {}
    read: dict[str, str] = {}  # each stream that a query reads, and the one that is recorded
    for query in queries:
        watched |= {stream.name: stream for stream in query.query.watched}
        for one in query.query.sources:
            if one.stream not in catalog.tables:
                base = watched[one.stream].shown_name if one.stream in watched else one.stream
                read[one.stream] = base
                readers.setdefault(base, query.name)
    _check(files, readers, catalog, ", ".join(query.name for query in queries), complete=complete)
    recorded = {}
    for stream, paths in files.items():
        if stream in readers:
            recorded[stream] = read_recording(catalog.streams[stream], paths, form, unit, absent_is_null=True)
            _warn(stream, recorded[stream])
    return {
        name: watched_recording(recorded[base], watched[name]) if name in watched else recorded[base]
        for name, base in read.items()
        if base in recorded
    }


def since_begin(alert: AlertDef | DerivedDef, recordings: Mapping[str, Recording]) -> dict[str, Recording]:
    """The recordings as an alert reads them: without readings from before the time in its option `from`."""
    begin = alert.options.from_ if isinstance(alert, AlertDef) else None
    if begin is None or begin == "earliest":
        return dict(recordings)
    return {name: recording.since(begin) for name, recording in recordings.items()}


def _check(
    files: Mapping[str, object], readers: Mapping[str, str], catalog: Catalog, asked: str, *, complete: bool
) -> None:
    """Check that only the streams in `readers` (stream to a query that reads it) have recordings, and with
    `complete` that all of them have one.
    """
    for stream in files:
        if catalog.raw_stream(stream) is None:
            raise InputError(
                _unknown(stream, catalog), where=f"--input {stream}=", hint=f"give {', '.join(readers)}"
            )
        if stream not in readers:
            click.echo(
                f"stream {stream}: its recording is ignored, since {asked} does not read the stream", err=True
            )
    for stream, query_name in readers.items():
        if complete and stream not in files:
            raise InputError(
                f"no recording of stream {stream}, which {query_name} reads",
                where="--input",
                hint=f"add --input {stream}=FILE",
            )


def warn_of_absent_columns(stream: str, recording: Recording) -> None:
    """Warn of columns that files don't have, which are NULL."""
    for text in recording.absent:
        click.echo(f"warning: stream {stream}: {text}", err=True)


def _warn(stream: str, recording: Recording) -> None:
    """Warn of implausible times, of columns that files don't have, and of rows that were left out."""
    warn_of_absent_columns(stream, recording)
    for text in recording.implausible_times:
        hint = (
            ""
            if recording.unit != "us" or "read as numbers" not in text
            else "; set --time-unit, or time_unit in CREATE STREAM, to the unit of the numbers"
        )
        click.echo(f"warning: stream {stream}: {text}{hint}", err=True)
    if recording.refused:
        what, them = ("row", "it") if recording.refused == 1 else ("rows", "them")
        click.echo(
            f"stream {stream}: {recording.refused} {what} left out; an edge would send {them} to the dead"
            " letters",
            err=True,
        )
        for one in recording.refusals:
            more = f" (the first of {one.rows} rows)" if one.rows > 1 else ""
            click.echo(f"  {one.where}: {one.reason}{more}", err=True)


def _unknown(stream: str, catalog: Catalog) -> str:
    if stream in catalog.derived:
        read = dict.fromkeys(source.stream for source in catalog.derived[stream].query.sources)
        base = f"stream{'s' if len(read) > 1 else ''} {' and '.join(read)}"
        return f"stream {stream} is made from {base} by a query, and is not recorded"
    if stream in catalog.tables:
        return f"{stream} is a table, whose rows are read from {catalog.tables[stream].path}"
    return f"there is no stream {stream}"

"""Recordings as input of `tamis run` and `tamis verify`: the shared options, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import click

from tamis.cli.common.options import Choice
from tamis.cli.common.output import say
from tamis.cli.common.sql_file import STANDARD_INPUT
from tamis.errors import InputError
from tamis.offline.recordings import read_recordings as _read_recordings
from tamis.offline.wording import COMMAND
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.recordings.files import Format
from tamis.recordings.times import TimeUnit
from tamis.recordings.typed import Recording, read_recording
from tamis.wording.names import normalized_name

_Command = TypeVar("_Command", bound=Callable[..., Any])


as_arrived_option = click.option(
    "--as-arrived",
    is_flag=True,
    help="Rows of a recording have arrived in the order of their file, so that some may be late. By default "
    "a recording is read in the order of its event times.",
)


def recording_options(command: _Command) -> _Command:
    """Add FILE.sql, --input, --time-unit, --format and --as-arrived, as `source`, `inputs`, `unit`, `form`
    and `as_arrived`.
    """
    for decorate in (
        as_arrived_option,
        click.option(
            "--format",
            "form",
            type=Choice(["csv", "ndjson", "parquet"]),
            help="Format of standard input and output, and of files without a known extension.",
        ),
        click.option(
            "--time-unit",
            "unit",
            type=Choice(get_args(TimeUnit)),
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
    as_arrived: bool = False,
) -> dict[str, Recording]:
    """The recordings of all streams that the queries read, by stream, as of
    `tamis.offline.recordings.read_recordings`. `unit` is the unit of times that are numbers; None: each
    stream's own. `as_arrived`: rows are in the order of their arrival. Notices are written to standard error.
    """
    return _read_recordings(
        catalog,
        queries,
        files,
        lambda stream, paths: read_recording(
            stream, paths, form, unit, absent_is_null=True, as_arrived=as_arrived
        ),
        wording=COMMAND,
        notify=say,
        complete=complete,
    )

"""Recordings of the streams that queries read: which are needed, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Column
from tamis.expressions.vectors import Vector
from tamis.offline.wording import Wording
from tamis.operators.time_join.key_table import KeyTable
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.recordings.times import date
from tamis.recordings.typed import Recording
from tamis.watching.series_watcher import SeriesWatcher
from tamis.wording.names import suggest

# Readings that are compared at once: each may match all patterns, and takes 48 bytes for each match.
_BATCH = 8192

_Given = TypeVar("_Given")


def watched_recording(base: Recording, stream: StreamDef) -> Recording:
    """The recording of `base`, as `stream` has it, which adds watches to the stream of the recording.

    A series has the readings of one key in one file that are not late, in the order of event time; readings
    of equal times are in the order of the file. The added columns are NULL for late readings.
    """
    assert stream.time is not None, "only streams with event time can be watched"
    times, files = base.columns[stream.time].data, base.file_numbers
    rows = np.flatnonzero(~base.late)
    rows = rows[np.lexsort((times[rows], files[rows]))]
    by_name = {name: vector.take(rows) for name, vector in base.columns.items()}
    keys = KeyTable().codes([Vector(files[rows]), *(by_name[name] for name in stream.key)], len(rows))
    found = _watched(stream, keys, times[rows], by_name)
    # Late readings take the NULL that is appended to each column.
    place = np.full(len(base), len(rows))
    place[rows] = np.arange(len(rows))
    added = {
        column.name: Vector.concat([vector, Vector.nulls(column.type, 1)]).take(place)
        for column, vector in found.items()
    }
    return replace(base, stream=stream, columns={**base.columns, **added})


def _watched(
    stream: StreamDef, keys: NDArray[np.int64], times: NDArray[np.int64], readings: Mapping[str, Vector]
) -> dict[Column, Vector]:
    """The columns of all watches for readings in order; all arrays have one length."""
    watcher = SeriesWatcher(stream.watches)
    parts: dict[Column, list[Vector]] = {column: [] for watch in stream.watches for column in watch.columns}
    for at in range(0, max(len(keys), 1), _BATCH):
        part = slice(at, at + _BATCH)
        columns = {("", name): vector.take(part) for name, vector in readings.items()}
        for one in watcher.push(keys[part], times[part], columns, len(keys[part])):
            for column, vector in zip(one.watch.columns, one.vectors(), strict=True):
                parts[column].append(vector)
    return {column: Vector.concat(vectors) for column, vectors in parts.items()}


def read_recordings(
    catalog: Catalog,
    queries: Sequence[AlertDef | DerivedDef],
    given: Mapping[str, _Given],
    read: Callable[[StreamDef, _Given], Recording],
    *,
    wording: Wording,
    notify: Callable[[str], object],
    complete: bool = True,
) -> dict[str, Recording]:
    """The recordings of all streams that the queries read, by stream. Watched streams have the columns of
    their watches.

    `given`: what `read` makes a recording of, by the name of its stream. `complete`: each stream must have a
    recording. `notify` gets how many rows an edge would have refused, how many are late, which times are
    implausible, which columns the input doesn't have, and which recordings no query reads. Raises InputError.
    """
    readers: dict[str, str] = {}
    watched: dict[str, StreamDef] = {}
    base_of: dict[str, str] = {}  # for each stream that a query reads, the one that is recorded
    for query in queries:
        watched |= {stream.name: stream for stream in query.query.watched}
        for one in query.query.sources:
            if one.stream not in catalog.tables:
                base = watched[one.stream].shown_name if one.stream in watched else one.stream
                base_of[one.stream] = base
                readers.setdefault(base, query.name)
    asked = ", ".join(query.name for query in queries)
    _check(given, readers, catalog, asked, wording=wording, notify=notify, complete=complete)
    recorded = {}
    for stream, one_given in given.items():
        if stream in readers:
            recorded[stream] = read(catalog.streams[stream], one_given)
            _warn(stream, recorded[stream], wording, notify)
    return {
        name: watched_recording(recorded[base], watched[name]) if name in watched else recorded[base]
        for name, base in base_of.items()
        if base in recorded
    }


def since_begin(alert: AlertDef | DerivedDef, recordings: Mapping[str, Recording]) -> dict[str, Recording]:
    """The recordings as an alert reads them: without readings from before the time in its option `from`."""
    begin = alert.options.from_ if isinstance(alert, AlertDef) else None
    if begin is None or begin == "earliest":
        return dict(recordings)
    return {name: recording.since(begin) for name, recording in recordings.items()}


def warn_of_absent_columns(stream: str, recording: Recording, notify: Callable[[str], object]) -> None:
    """Warn of columns that the input doesn't have, which are NULL."""
    for text in recording.absent:
        notify(f"warning: stream {stream}: {text}")


def _check(
    given: Mapping[str, object],
    readers: Mapping[str, str],
    catalog: Catalog,
    asked: str,
    *,
    wording: Wording,
    notify: Callable[[str], object],
    complete: bool,
) -> None:
    """Check that only the streams in `readers` (stream to a query that reads it) have recordings, and with
    `complete` that all of them have one.
    """
    for stream in given:
        if catalog.raw_stream(stream) is None:
            where, hint = (
                wording.input.format(stream),
                suggest(stream, readers, f"give {', '.join(readers)}"),
            )
            raise InputError(_unknown(stream, catalog), where=where, hint=hint)
        if stream not in readers:
            notify(f"stream {stream}: its recording is ignored, since {asked} does not read the stream")
    for stream, query_name in readers.items():
        if complete and stream not in given:
            raise InputError(
                f"no recording of stream {stream}, which {query_name} reads",
                where=wording.inputs,
                hint=f"add {wording.add.format(stream)}",
            )


def _warn(stream: str, recording: Recording, wording: Wording, notify: Callable[[str], object]) -> None:
    """Warn of implausible times, of columns that the input doesn't have, of rows that were left out, and of
    late readings.
    """
    warn_of_absent_columns(stream, recording, notify)
    for text in recording.implausible_times:
        hint = (
            ""
            if recording.unit != "us" or "numbers are read as" not in text
            else f"; set {wording.time_unit}, or time_unit in CREATE STREAM, to the unit of the numbers"
        )
        notify(f"warning: stream {stream}: {text}{hint}")
    if recording.refused:
        what, them = ("row", "it") if recording.refused == 1 else ("rows", "them")
        lines = [
            f"stream {stream}: {recording.refused} {what} left out; an edge would send {them} to the dead"
            " letters"
        ]
        for one in recording.refusals:
            more = f" (the first of {one.rows} rows)" if one.rows > 1 else ""
            lines.append(f"  {one.where}: {one.reason}{more}")
        notify("\n".join(lines))
    if recording.late_causes:
        count = int(recording.late.sum())
        lines = [
            f"stream {stream}: {count} of {len(recording)} readings {'is' if count == 1 else 'are'} late:"
            " window functions and similar() are NULL for late readings, and windows that have ended leave"
            " them out"
        ]
        lines += [
            f"  {one.where}: {date(one.time)} is {one.ahead / 1e6:g} s ahead of the readings behind it, of"
            f" which {one.late} {'is' if one.late == 1 else 'are'} late"
            for one in recording.late_causes
        ]
        notify("\n".join(lines))


def _unknown(stream: str, catalog: Catalog) -> str:
    if stream in catalog.derived:
        read = dict.fromkeys(source.stream for source in catalog.derived[stream].query.sources)
        base = f"stream{'s' if len(read) > 1 else ''} {' and '.join(read)}"
        return f"stream {stream} is made from {base} by a query, and is not recorded"
    if stream in catalog.tables:
        return f"{stream} is a table, whose rows are read from {catalog.tables[stream].path}"
    return f"there is no stream {stream}"

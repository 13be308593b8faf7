"""Run a standing query of any kind over recordings of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tamis.evaluation.standing.application_time.recording_run import run_in_application_time
from tamis.evaluation.standing.compilation import compile_query
from tamis.evaluation.standing.contract import RecordedRun, Rows
from tamis.evaluation.standing.nested_query import tuples_of
from tamis.evaluation.standing.timeless.recording_run import run_timeless
from tamis.evaluation.standing.window_aggregates.recording_run import run_windowed
from tamis.query.model import Catalog, NestedQuery, Query, StreamDef
from tamis.recordings.typed import Recording

# Columns are joined by compiled code, which is fast only over many tuples at once.
_LARGE_BATCH = 65_536


def run_recordings(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """All rows of a query that keeps synopses. `recordings` must be those of its streams.

    A join by time has so many rows that those which a query reads in windows aren't all in memory at once.
    """
    if query.nested is not None and not any(one.timed_by for one in _inner(query.nested)):
        return _run_nested(query, query.nested, catalog, recordings)
    if query.windowed and query.timed_by is None:
        (source,) = query.windowed
        return run_windowed(query, catalog, recordings[source.stream])
    standing = compile_query(query, catalog)
    assert standing is not None, "every query that keeps synopses is a standing query"
    if query.timeless:
        return run_timeless(standing, recordings)
    if query.asof or query.timed_by is not None or query.nested is not None:
        return run_in_application_time(standing, recordings, _LARGE_BATCH)
    return run_in_application_time(standing, recordings)


def _inner(nested: NestedQuery) -> Iterator[Query]:
    """The queries whose rows a query reads."""
    yield from (stream.aggregates for stream in nested.streams if stream.aggregates is not None)


def _run_nested(
    query: Query, nested: NestedQuery, catalog: Catalog, recordings: Mapping[str, Recording]
) -> RecordedRun:
    """A query over rows of aggregates: first all of these rows, then the query over them. In a fleet rows are
    passed on when they arise; the result is the same, because they arise in order of event time.
    """
    inner = {
        stream.name: run_recordings(stream.aggregates, catalog, recordings_of(stream.aggregates, recordings))
        for stream in nested.streams
        if stream.aggregates is not None
    }
    made = {stream.name: recorded(stream, inner[stream.name].rows) for stream in nested.streams}
    read = recordings_of(nested.query, {**recordings, **made})
    last = run_recordings(nested.query, catalog.with_streams(nested.streams), read)
    every = [*inner.values(), last]
    return RecordedRun(last.rows, sum(one.entries for one in every), sum(one.late for one in every))


def recordings_of(query: Query, recordings: Mapping[str, Recording]) -> dict[str, Recording]:
    """The recordings of the streams that a query reads."""
    streams = dict.fromkeys(source.stream for source in query.sources)
    return {stream: recordings[stream] for stream in streams if stream in recordings}


def recorded(stream: StreamDef, rows: Rows) -> Recording:
    """Rows of aggregates as the recording of their stream."""
    return Recording(stream, tuples_of(stream, rows), np.zeros(len(rows), np.bool_), {}, 0)

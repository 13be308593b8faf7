"""Run a standing query of any kind over recordings of its streams.

Of aggregates of windows, each file is a separate source. Its watermark is the greatest event time so far
minus the delay of the stream. Tuples are taken in the order of these greatest times. Then a tuple is behind
the common watermark only if it is behind the watermark of its own file, so the same tuples are late as if the
files were run one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.operators.compilation import compile_query, tuples_of
from tamis.operators.contract import (
    InterleavedInput,
    RecordedRun,
    Rows,
    StandingEvaluator,
)
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.sessions import SessionGroups
from tamis.query.model import (
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.recordings.typed import ORDER, Recording

# Tuples of a batch: enough for the work in columns to dominate, and few enough to fit in the cache. Windows
# are closed after each batch, and earlier if a late tuple needs it.
BATCH = 65_536
# Tuples of a batch in application time; tuples of one time stay together. It limits the number of waiting
# tuples.
_SMALL_BATCH = 1024
# Later than every event time.
_END = 2**62
# Sessions compare times with the watermark itself.
_EXACT = Window(1, 1)


def run_in_application_time(
    query: StandingEvaluator, recordings: Mapping[str, Recording], batch_size: int = _SMALL_BATCH
) -> RecordedRun:
    """Run an evaluator with empty state over the recordings of its streams, in order of event time, to their
    end. Streams without event time come first. `completed` names no tuple. `batch_size`: the number of tuples
    between two watermarks.
    """
    first = next(iter(recordings))
    empty = {name: vector.take(np.zeros(0, np.int64)) for name, vector in recordings[first].columns.items()}
    parts = [query.take(first, empty, 0)]
    most = 0
    timed = {name: one for name, one in recordings.items() if one.stream.time is not None}
    for name, one in recordings.items():
        if name not in timed:
            parts.append(query.take(name, one.columns, len(one)))
            most = max(most, query.entries())
    times = {name: one.columns[str(one.stream.time)].data for name, one in timed.items()}
    every = np.sort(np.concatenate([*times.values(), np.zeros(0, np.int64)]))
    before = -_END
    for end in dict.fromkeys([*every[batch_size::batch_size].tolist(), _END]):
        for name, one in timed.items():
            at = np.flatnonzero((times[name] >= before) & (times[name] < end))
            at = at[np.argsort(times[name][at], kind="stable")]
            batch = {column: vector.take(at) for column, vector in one.columns.items()}
            parts.append(query.take(name, batch, len(at)))
        most = max(most, query.entries())
        parts += [query.advance(name, end) for name in timed]
        most = max(most, query.entries())
        before = end
    return RecordedRun(Rows.concat(parts), most)


def run_timeless(query: StandingEvaluator, recordings: Mapping[str, Recording]) -> RecordedRun:
    """Run an evaluator with empty state over the recordings of its streams, in the order of their column
    `_order`, or without it one recording after the other.

    Raises InputError if only some recordings have that column; a recording without tuples needs none.
    """
    assert isinstance(query, InterleavedInput), "without event time, tuples may come in any interleaving"
    names, stream_of, row = _arrival_order(recordings)
    parts = []
    most = 0
    for start in range(0, max(len(stream_of), 1), BATCH):
        some, at = stream_of[start : start + BATCH], row[start : start + BATCH]
        batches = {
            name: {column: vector.take(at[some == i]) for column, vector in recordings[name].columns.items()}
            for i, name in enumerate(names)
        }
        found = query.take_interleaved(batches, some)
        parts.append(Rows(found.columns, found.completed + start))
        most = max(most, query.entries())
    return RecordedRun(Rows.concat(parts), most)


def _arrival_order(
    recordings: Mapping[str, Recording],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The streams, and for every tuple in order of arrival the number of its stream and its row there."""
    names, orders = list(recordings), [one.order for one in recordings.values()]
    ordered = [name for name, order in zip(names, orders, strict=True) if order is not None]
    without = [name for name in names if name not in ordered and len(recordings[name])]
    if ordered and without:
        raise InputError(
            f"stream {ordered[0]} has a column {ORDER} and stream {without[0]} has none",
            where="--input",
            hint=f"give all recordings a column {ORDER}, or none",
        )
    stream_of = np.concatenate([np.full(len(one), i, np.int64) for i, one in enumerate(recordings.values())])
    row = np.concatenate([np.arange(len(one), dtype=np.int64) for one in recordings.values()])
    if ordered:
        arrived = np.argsort(np.concatenate([one for one in orders if one is not None]), kind="stable")
        stream_of, row = stream_of[arrived], row[arrived]
    return names, stream_of, row


def run_windowed(
    query: WindowGroupBy | SessionGroupBy, catalog: Catalog, recording: Recording
) -> RecordedRun:
    """Run a query with aggregates of windows over the recording of its stream, to its end; the rows are in
    order of the ends of their windows.
    """
    if isinstance(query, WindowGroupBy):
        standing: WindowedGroups | SessionGroups = WindowedGroups(query, catalog)
    else:
        standing = SessionGroups(query, catalog)
    stream = recording.stream
    assert stream.time is not None
    order = np.argsort(recording.reached, kind="stable")
    reached = recording.reached[order] - stream.delay
    parts: list[Rows] = []
    most = 0
    for first, last in _batches(query.window or _EXACT, recording.columns[stream.time].data[order], reached):
        if first:
            parts.append(standing.advance(stream.name, int(reached[first - 1])))
            most = max(most, standing.entries())
        at = order[first:last]
        batch = {name: vector.take(at) for name, vector in recording.columns.items()}
        parts.append(standing.take(stream.name, batch, len(at)))
    parts.append(standing.advance(stream.name, _END))
    return RecordedRun(Rows.concat(parts), most, standing.late)


def _batches(
    window: Window, times: NDArray[np.int64], reached: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """First and last rows of batches. The batches are cut so that, before each tuple that is late for a
    window, all windows that the watermark has passed are closed. `reached`: the watermark after each tuple.
    """
    if not len(times):
        return
    passed = (reached[:-1] - window.offset) // window.slide
    late = np.flatnonzero((times[1:] - window.offset) // window.slide < passed)
    new = np.concatenate((np.ones(min(1, len(late)), np.bool_), np.diff(passed[late]) != 0))
    cuts = np.union1d(late[new] + 1, np.arange(0, len(times), BATCH))
    ends = np.append(cuts[1:], len(times))
    yield from zip(cuts.tolist(), ends.tolist(), strict=True)


def run_recordings(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """All rows of a query that keeps synopses. `recordings` must be those of its streams.

    A join by time has so many rows that those which a query reads in windows aren't all in memory at once.
    """
    if isinstance(query, WindowGroupBy | SessionGroupBy):
        (source,) = query.windowed
        return run_windowed(query, catalog, recordings[source.stream])
    if isinstance(query, NestedQuery) and not any(isinstance(one.query, JoinByTime) for one in query.streams):
        return _run_nested(query, catalog, recordings)
    standing = compile_query(query, catalog)
    assert standing is not None, "every query that keeps synopses is a standing query"
    match query:
        case TimelessSelect() | TimelessGroupBy() | TimelessUnion():
            return run_timeless(standing, recordings)
        case LatestValueJoin() | NestedQuery():
            return run_in_application_time(standing, recordings, BATCH)
        case JoinByTime() if query.timed_by is not None:
            return run_in_application_time(standing, recordings, BATCH)
        case JoinByTime() | ApplicationTimeSelect() | ApplicationTimeUnion():
            return run_in_application_time(standing, recordings)
        case _:
            assert_never(query)


def _run_nested(nested: NestedQuery, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """A query over rows of aggregates: first all of these rows, then the query over them. In a fleet rows are
    passed on when they arise; the result is the same, because they arise in order of event time.
    """
    inner = {
        stream.name: run_recordings(stream.query, catalog, recordings_of(stream.query, recordings))
        for stream in nested.streams
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

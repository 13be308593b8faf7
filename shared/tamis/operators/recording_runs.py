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

from tamis.declarations.definitions import ColumnDef, Window
from tamis.declarations.file_access import FileAccess
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.operators.build import operator
from tamis.operators.contract import (
    CountsLate,
    InterleavedInput,
    RecordedRun,
    Rows,
    StandingEvaluator,
)
from tamis.operators.nested import tuples_of
from tamis.plan import nodes
from tamis.recordings.typed import ORDER, Recording

# Tuples of a batch: enough for the work in columns to dominate, and few enough to fit in the cache. Windows
# are closed after each batch, and earlier if a late tuple needs it.
BATCH = 65_536
# Tuples of a batch in application time; tuples of one time stay together. It limits the number of waiting
# tuples.
_SMALL_BATCH = 1024
# Later than every event time.
END = 2**62
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
    before = -END
    for end in dict.fromkeys([*every[batch_size::batch_size].tolist(), END]):
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
    `_order`, or without it one recording after the other. The files of a stream with event time are taken in
    the order of their watermarks.

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
        rows = query.take_interleaved(batches, some)
        parts.append(Rows(rows.columns, rows.completed + start))
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
    if not ordered and len(names) == 1 and recordings[names[0]].stream.time is not None:
        ordered, orders = names, [recordings[names[0]].reached]
    if ordered:
        arrived = np.argsort(np.concatenate([one for one in orders if one is not None]), kind="stable")
        stream_of, row = stream_of[arrived], row[arrived]
    return names, stream_of, row


def run_windowed(
    node: nodes.Windows | nodes.Sessions, file_access: FileAccess, recording: Recording
) -> RecordedRun:
    """Run aggregates of windows over the recording of their stream, to its end; the rows are in order of the
    ends of their windows.
    """
    standing = operator(node, file_access)
    assert isinstance(standing, CountsLate)
    stream = recording.stream
    assert stream.time is not None
    order = np.argsort(recording.reached, kind="stable")
    reached = recording.reached[order] - stream.delay
    window = node.window if isinstance(node, nodes.Windows) else _EXACT
    parts: list[Rows] = []
    most = 0
    for first, last in closing_batches(window, recording.columns[stream.time].data[order], reached):
        if first:
            parts.append(standing.advance(stream.name, int(reached[first - 1])))
            most = max(most, standing.entries())
        at = order[first:last]
        batch = {name: vector.take(at) for name, vector in recording.columns.items()}
        parts.append(standing.take(stream.name, batch, len(at)))
    parts.append(standing.advance(stream.name, END))
    return RecordedRun(Rows.concat(parts), most, standing.late)


def closing_batches(
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


def run_recordings(
    node: nodes.Node, file_access: FileAccess, recordings: Mapping[str, Recording]
) -> RecordedRun:
    """All rows of a plan that keeps synopses. `recordings` are those of its streams.

    A join by time has so many rows that those which a query reads in windows aren't all in memory at once.
    """
    recordings = {name: recordings[name] for name in nodes.streams_of(node)}
    match node:
        case nodes.Nested() if not any(isinstance(one.node, nodes.TimeJoin) for one in node.inner):
            return _run_nested(node, file_access, recordings)
        case nodes.Windows() | nodes.Sessions():
            return run_windowed(node, file_access, recordings[node.scan.stream])
        case nodes.Rows() | nodes.Union() | nodes.Representatives() | nodes.Groups():
            return run_timeless(operator(node, file_access), recordings)
        case nodes.ApplicationTime():
            return run_in_application_time(operator(node, file_access), recordings)
        case nodes.LatestValues() | nodes.TimeJoin() | nodes.Nested():
            return run_in_application_time(operator(node, file_access), recordings, BATCH)
        case _:
            assert_never(node)


def _run_nested(
    node: nodes.Nested, file_access: FileAccess, recordings: Mapping[str, Recording]
) -> RecordedRun:
    """A query over rows of aggregates: first all of these rows, then the query over them. In a fleet rows are
    passed on when they arise; the result is the same, because they arise in order of event time.
    """
    inner = [run_recordings(one.node, file_access, recordings) for one in node.inner]
    made = {one.stream: recorded(_stream(one), run.rows) for one, run in zip(node.inner, inner, strict=True)}
    last = run_recordings(node.outer, file_access, {**recordings, **made})
    every = [*inner, last]
    return RecordedRun(last.rows, sum(one.entries for one in every), sum(one.late for one in every))


def recorded(stream: StreamDef, rows: Rows) -> Recording:
    """Rows of a query as the recording of the stream that they are."""
    tuples = tuples_of(str(stream.time), [column.name for column in stream.columns], rows)
    return Recording(stream, tuples, np.zeros(len(rows), np.bool_), {}, 0)


def _stream(inner: nodes.InnerRows) -> StreamDef:
    columns = tuple(ColumnDef(*column) for column in (*inner.columns, (inner.time, Type.TIMESTAMP)))
    return StreamDef(inner.stream, columns, inner.time, 0)

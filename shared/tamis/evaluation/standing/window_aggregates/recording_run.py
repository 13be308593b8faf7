"""Run of a query with aggregates of windows over a recording.

Each file is a separate source. Its watermark is the greatest event time so far minus the stream's delay.
Tuples are taken in the order of these greatest times. Then a tuple is behind the common watermark only if it
is behind the watermark of its own file, so the same tuples are late as if the files were run one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import RecordedRun, Rows
from tamis.evaluation.standing.window_aggregates.groups import WindowedGroups
from tamis.evaluation.standing.window_aggregates.sessions import SessionGroups
from tamis.query.model import Catalog, Query, Window
from tamis.recordings.typed import Recording

# Tuples that are taken before windows are closed, unless a late tuple needs them closed earlier.
_BATCH = 65_536
# Sessions compare times with the watermark itself.
_EXACT = Window(1, 1)
# Later than every event time: the recording ends, and with it all windows.
_END = 2**62


def run_windowed(query: Query, catalog: Catalog, recording: Recording) -> RecordedRun:
    """Run a query with aggregates of windows over the recording of its stream, to its end; the rows are in
    order of the ends of their windows.
    """
    evaluator = WindowedGroups if query.session is None else SessionGroups
    standing = evaluator(query, catalog)
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
    cuts = np.union1d(late[new] + 1, np.arange(0, len(times), _BATCH))
    ends = np.append(cuts[1:], len(times))
    yield from zip(cuts.tolist(), ends.tolist(), strict=True)

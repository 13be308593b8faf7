"""Aggregates of windows over a recording.

Each file is a source of its own, and its watermark is the stream's delay behind the greatest event time so
far. Tuples are taken in the order of these greatest times: then none is behind the watermark of all together
that isn't behind that of its own file, and what is late is the same as file by file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Rows
from tamis.evaluation.standing.recorded import Played
from tamis.evaluation.standing.windowed.groups import WindowedGroups
from tamis.query.model import Catalog, Query, Window
from tamis.recordings.typed import Recording

# As many tuples are taken before windows are ended, unless a late one asks for it.
_BATCH = 65_536
# Behind every time that there can be: the recording ends, and with it all windows.
_END = 2**62


def play_windows(query: Query, catalog: Catalog, recording: Recording) -> Played:
    """Evaluate a query with aggregates over windows over the recording of its stream, to its end; rows are in
    order of their windows' ends.
    """
    standing = WindowedGroups(query, catalog)
    stream = recording.stream
    assert stream.time is not None
    assert query.window is not None
    order = np.argsort(recording.reached, kind="stable")
    reached = recording.reached[order] - stream.delay
    parts: list[Rows] = []
    most = 0
    for first, last in _batches(query.window, recording.columns[stream.time].data[order], reached):
        if first:
            parts.append(standing.advance(stream.name, int(reached[first - 1])))
            most = max(most, standing.entries())
        at = order[first:last]
        batch = {name: vector.take(at) for name, vector in recording.columns.items()}
        parts.append(standing.take(stream.name, batch, len(at)))
    parts.append(standing.advance(stream.name, _END))
    return Played(Rows.concat(parts), most, standing.late)


def _batches(
    window: Window, times: NDArray[np.int64], reached: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Where batches begin and end: so that before each tuple which is late for a window all windows have
    ended that its watermark ends. `reached`: the watermark behind each tuple.
    """
    if not len(times):
        return
    passed = reached[:-1] // window.slide
    late = np.flatnonzero(times[1:] // window.slide < passed)
    new = np.concatenate((np.ones(min(1, len(late)), np.bool_), np.diff(passed[late]) != 0))
    cuts = np.union1d(late[new] + 1, np.arange(0, len(times), _BATCH))
    ends = np.append(cuts[1:], len(times))
    yield from zip(cuts.tolist(), ends.tolist(), strict=True)

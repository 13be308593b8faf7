"""Run a query in application time over recordings of its streams."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.evaluation.standing.contract import RecordedRun, Rows, StandingEvaluator
from tamis.recordings.typed import Recording

# Tuples between two watermarks; tuples of one time stay together. It limits the number of waiting tuples.
_BATCH = 1024
# Later than every event time.
_END = 2**62


def run_in_application_time(
    query: StandingEvaluator, recordings: Mapping[str, Recording], batch_size: int = _BATCH
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

"""Run a query over streams without event time over recordings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.evaluation.standing.contract import (
    InterleavedInput,
    RecordedRun,
    Rows,
    StandingEvaluator,
)
from tamis.recordings.typed import ORDER, Recording

# Tuples of a batch: enough for the work in columns to dominate, and few enough to fit in the cache.
BATCH = 65_536


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

"""The recording of a watched stream: that of its base, with the columns of the watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.entries.key_table import KeyTable
from tamis.expressions.nodes import Column
from tamis.expressions.vectors import Vector
from tamis.query.model import StreamDef
from tamis.recordings.typed import Recording
from tamis.watching.series_watcher import SeriesWatcher

# Readings that are compared at once: each may match all patterns, and takes 48 bytes for each match.
_BATCH = 8192


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

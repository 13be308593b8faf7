"""The recording of a watched stream: that of its base, with the columns of the watches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tamis.evaluation.entries.key_table import KeyTable
from tamis.expressions.vectors import Vector
from tamis.query.model import StreamDef
from tamis.recordings.typed import Recording
from tamis.watching.series_watcher import SeriesWatcher


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
    found = SeriesWatcher(stream.watches).push(
        keys, times[rows], {("", name): vector for name, vector in by_name.items()}, len(rows)
    )
    # Late readings take the NULL that is appended to each column.
    place = np.full(len(base), len(rows))
    place[rows] = np.arange(len(rows))
    added = {
        column.name: Vector.concat([vector, Vector.nulls(column.type, 1)]).take(place)
        for one in found
        for column, vector in zip(one.watch.columns, one.vectors(), strict=True)
    }
    return replace(base, stream=stream, columns={**base.columns, **added})

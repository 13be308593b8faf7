"""The readings of a watched stream by series, put in order by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Expr
from tamis.expressions.python_functions import calls
from tamis.recordings.typed import Recording
from tamis.verification.database import register, session
from tamis.verification.reference import attribute, tuples

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

# A reading of greater magnitude counts as a gap, and so does NULL.
GREATEST = 1e150
_BLOCK = 2_000_000  # values of windows that are held at once


@dataclass(frozen=True)
class Series:
    """The readings that are not late, by key and file, then by event time, then by place in the file.

    `rows` are their rows in the recording, `values` have NaN for gaps. `starts` is true for the first reading
    of a series.
    """

    rows: Int64s
    times: Int64s
    values: Floats
    starts: NDArray[np.bool_]

    def windows(self, length: int, max_gap: int, patterns: int) -> Iterator[tuple[Int64s, Floats]]:
        """All windows of this length without gaps, in blocks: the rows of the recording that end them, of
        shape (windows,), and the values, of shape (windows, length). A block is small enough for arrays of
        shape (windows, patterns).
        """
        whole = np.isfinite(self.values)
        apart = self.starts | (np.diff(self.times, prepend=self.times[:1]) > max_gap)
        apart[1:] |= ~whole[:-1]
        number = np.arange(len(self.rows))
        run = number - np.maximum.accumulate(np.where(apart, number, 0)) + 1
        last = np.flatnonzero(whole & (run >= length))
        size = max(_BLOCK // max(length, patterns), 1)
        for at in range(0, len(last), size):
            ends = last[at : at + size]
            yield self.rows[ends], self.values[ends[:, None] + np.arange(1 - length, 1)]


def series_of(recording: Recording, value: Expr) -> Series:
    """The series of a value over the columns of a recording."""
    stream = recording.stream
    assert stream.time is not None
    for called in calls(value):
        register(called)
    of = ", ".join(["file", *(attribute(name) for name in stream.key)])
    reading = to_duckdb(value, lambda column: attribute(column.name))
    with session() as connection:
        table = tuples(recording).append_column("file", [recording.file_numbers])
        connection.register("readings", table)
        found = connection.sql(
            f"SELECT _row, {attribute(stream.time)} AS time, CAST({reading} AS DOUBLE) AS value,"
            f" dense_rank() OVER (ORDER BY {of}) AS series FROM readings WHERE NOT _late"
            " ORDER BY series, time, _row"
        ).fetchnumpy()
    values = np.ma.filled(np.ma.asarray(found["value"], np.float64), np.nan)
    values = np.where(np.abs(values) <= GREATEST, values, np.nan)
    series = np.asarray(found["series"], np.int64)
    return Series(
        np.asarray(found["_row"], np.int64),
        np.asarray(found["time"], np.int64),
        values,
        np.diff(series, prepend=-1) != 0,
    )

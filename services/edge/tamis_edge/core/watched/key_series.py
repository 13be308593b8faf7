"""The series of all keys of a shard, and the columns of the watches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.evaluation.entries.key_table import KeyTable
from tamis.expressions.python_functions import FunctionError
from tamis.query.watches import Watch
from tamis.telemetry.logs import get_logger
from tamis.watching.latest_times import LatestTimes
from tamis.watching.series_watcher import SeriesWatcher
from tamis.watching.watched_columns import WatchedColumns
from tamis_edge.core.rows import Batch

_log = get_logger("edge.series")


class KeySeries:
    """Series of the readings of each key, told apart by the values of the columns `key`."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = key
        self._keys = KeyTable()
        self._watcher = SeriesWatcher((), _failed)
        self._times = LatestTimes(0)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def bytes(self) -> int:
        """The memory of the series."""
        return len(self._keys) * (self._watcher.bytes_per_key + 8 * (self._watcher.most_needed + 1))

    def watch(self, watches: Sequence[Watch]) -> None:
        """Watch for other patterns from now on, in the series as they are."""
        watcher = SeriesWatcher(watches, _failed)
        watcher.continue_from(self._watcher)
        self._watcher, self._times = watcher, self._times.keeping(watcher.most_needed)

    def push(self, batch: Batch) -> tuple[WatchedColumns, ...]:
        """Append readings, in the order of their event times; returns the columns of each watch."""
        codes = self._keys.codes([batch.columns[name] for name in self.key], len(batch))
        self._times.push(codes, batch.times)
        return self._watcher.push(codes, batch.times, batch.view(), len(batch))

    def oldest_needed(self, watermark: int) -> int | None:
        """The least event time in any window of a reading that may still come; None if there is none."""
        return self._times.oldest(self._watcher.needed(watermark))

    def forget_ended(self, watermark: int) -> None:
        """Forget the keys whose readings no window can have any more, if there are many keys."""
        if self._keys.grown:
            needed = self._watcher.needed(watermark)
            self._watcher.forget(np.flatnonzero(needed == 0))
            self._keys.forget([np.flatnonzero(needed)])


def _failed(error: FunctionError) -> None:
    _log.error("a value can't be computed: no pattern matches at these readings", error=str(error))

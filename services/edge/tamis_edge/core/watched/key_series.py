"""The series of all keys of a shard, and the columns of the watches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.evaluation.key_table import KeyTable
from tamis.expressions.python_functions import FunctionError
from tamis.query.watches import AnyWatch
from tamis.telemetry.logs import get_logger
from tamis.watching.latest_times import LatestTimes
from tamis.watching.series_watcher import SeriesWatcher
from tamis.watching.watched_columns import AddedColumns
from tamis_edge.core.rows import Batch

_log = get_logger("edge.series")
_NEVER = 2**63 - 1


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
        per_key = self._watcher.bytes_per_key + 8 * (self._watcher.most_needed + 1)
        return len(self._keys) * per_key + self._watcher.history_bytes

    def watch(self, watches: Sequence[AnyWatch]) -> None:
        """Compute the columns of other watches from now on, over the series as they are."""
        watcher = SeriesWatcher(watches, _failed)
        watcher.continue_from(self._watcher)
        self._watcher, self._times = watcher, self._times.keeping(watcher.most_needed)

    def push(self, batch: Batch) -> tuple[AddedColumns, ...]:
        """Append readings, in the order of their event times; returns the columns of each watch."""
        codes = self._keys.codes([batch.columns[name] for name in self.key], len(batch))
        self._times.push(codes, batch.times)
        return self._watcher.push(codes, batch.times, batch.view(), len(batch))

    def oldest_needed(self, watermark: int) -> int | None:
        """The least event time in any window or frame of a reading that may still come; None if there is
        none.
        """
        found = int(self._watcher.forget_history(watermark).min(initial=_NEVER))
        in_windows = self._times.oldest(self._watcher.needed(watermark))
        if in_windows is not None:
            found = min(found, in_windows)
        return None if found == _NEVER else found

    def forget_ended(self, watermark: int) -> None:
        """Forget the keys whose readings no window or frame can have any more, if there are many keys."""
        if self._keys.grown:
            needed = self._watcher.needed(watermark) > 0
            needed |= self._watcher.forget_history(watermark) != _NEVER
            self._watcher.forget(np.flatnonzero(~needed))
            self._keys.forget([np.flatnonzero(needed)])


def _failed(error: FunctionError) -> None:
    _log.error(
        "a value can't be computed: no pattern matches at these readings, and window functions read NULL",
        error=str(error),
    )

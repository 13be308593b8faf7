"""The event times of the latest readings of each series."""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.similarity.sliding_transform import Int64s

# Before the first reading of a series. It is so long ago that the first reading counts as behind a gap.
START = -(2**63)


@njit(cache=True)
def exchange(keys: Int64s, times: Int64s, last: Int64s) -> Int64s:
    """The time of the reading before each reading in its series; `last` is that by key, and is updated."""
    before = np.empty_like(times)
    for row in range(len(keys)):
        before[row] = last[keys[row]]
        last[keys[row]] = times[row]
    return before


class LatestTimes:
    """The event times of the latest readings of each series.

    A series takes 8 bytes for each of the `most` readings that are kept, and 8 bytes more.
    """

    def __init__(self, most: int) -> None:
        self._times = np.zeros((0, max(most, 1)), np.int64)
        self._seen = np.zeros(0, np.int64)

    def push(self, keys: Int64s, times: Int64s) -> None:
        """Append readings to their series; both arrays have shape (n,). Times of a series don't fall."""
        more = int(keys.max(initial=-1)) + 1 - len(self._seen)
        if more > 0:
            more = max(more, len(self._seen))
            self._times = np.concatenate([self._times, np.zeros((more, self._times.shape[1]), np.int64)])
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])
        _append(keys, times, self._times, self._seen)

    def oldest(self, needed: Int64s) -> int | None:
        """The least event time among the `needed` latest readings of the series, given by key; None if no
        reading is needed. A series must have had as many readings.
        """
        keys = np.flatnonzero(needed)
        if not len(keys):
            return None
        at = (self._seen[keys] - needed[keys]) % self._times.shape[1]
        return int(self._times[keys, at].min())

    def keeping(self, most: int) -> LatestTimes:
        """The same series, with room for another number of readings."""
        found = LatestTimes(most)
        found._seen = self._seen.copy()
        found._times = np.zeros((len(self._seen), max(most, 1)), np.int64)
        have, room = self._times.shape[1], found._times.shape[1]
        numbers = self._seen[:, None] - np.arange(1, min(have, room) + 1)
        latest = np.take_along_axis(self._times, numbers % have, axis=1)
        np.put_along_axis(found._times, numbers % room, latest, axis=1)
        return found


@njit(cache=True)
def _append(keys: Int64s, times: Int64s, kept: Int64s, seen: Int64s) -> None:
    most = kept.shape[1]
    for row in range(len(keys)):
        key = keys[row]
        kept[key, seen[key] % most] = times[row]
        seen[key] += 1

"""The latest reading of each series: its time, and where it and those before it stand in their source."""

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


class LatestPlaces:
    """The places of the latest readings of each series, such as offsets in a source.

    A series takes 8 bytes for each of the `most` readings that are kept, and 8 bytes more.
    """

    def __init__(self, most: int) -> None:
        self._places = np.zeros((0, max(most, 1)), np.int64)
        self._seen = np.zeros(0, np.int64)

    def push(self, keys: Int64s, places: Int64s) -> None:
        """Append readings to their series; both arrays have shape (n,)."""
        more = int(keys.max(initial=-1)) + 1 - len(self._seen)
        if more > 0:
            more = max(more, len(self._seen))
            self._places = np.concatenate([self._places, np.zeros((more, self._places.shape[1]), np.int64)])
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])
        _append(keys, places, self._places, self._seen)

    def oldest(self, needed: Int64s) -> int | None:
        """The least place among the `needed` latest readings of the series, given by key; None if no reading
        is needed. A series must have had as many readings.
        """
        found = _oldest(needed, self._places, self._seen)
        return None if found == _NO_PLACE else int(found)


_NO_PLACE = 2**63 - 1


@njit(cache=True)
def _append(keys: Int64s, places: Int64s, kept: Int64s, seen: Int64s) -> None:
    most = kept.shape[1]
    for row in range(len(keys)):
        key = keys[row]
        kept[key, seen[key] % most] = places[row]
        seen[key] += 1


@njit(cache=True)
def _oldest(needed: Int64s, kept: Int64s, seen: Int64s) -> int:
    most, found = kept.shape[1], _NO_PLACE
    for key in range(len(needed)):
        for back in range(1, needed[key] + 1):
            found = min(found, kept[key, (seen[key] - back) % most])
    return found

"""Compiled inner loops of the temporal join. Rows are sorted by (key, time)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]


@njit(cache=True)
def windows(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    keys: Ints, times: Ints, probe: Ints, lo: Ints, hi: Ints
):
    """The half-open range (start, stop) of rows with the key and a time in [lo, hi], for each probe."""
    size = len(keys)
    start = np.empty(len(probe), np.int64)
    stop = np.empty(len(probe), np.int64)
    for row in range(len(probe)):
        key = probe[row]
        a, b = 0, size
        while a < b:
            middle = (a + b) >> 1
            if keys[middle] < key or (keys[middle] == key and times[middle] < lo[row]):
                a = middle + 1
            else:
                b = middle
        start[row] = a
        b = size
        while a < b:
            middle = (a + b) >> 1
            if keys[middle] < key or (keys[middle] == key and times[middle] <= hi[row]):
                a = middle + 1
            else:
                b = middle
        stop[row] = a
    return start, stop


@njit(cache=True)
def expand(start: Ints, stop: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """All pairs (probe, row) of the ranges: two arrays as long as the ranges together."""
    total = 0
    for row in range(len(start)):
        total += stop[row] - start[row]
    left = np.empty(total, np.int64)
    right = np.empty(total, np.int64)
    at = 0
    for row in range(len(start)):
        for match in range(start[row], stop[row]):
            left[at] = row
            right[at] = match
            at += 1
    return left, right

"""The step of the split algorithm (kuntschke-2006, section 3.5): a box minus another box, compiled.

A strategy takes one box of shape (d,), the boxes that may cover it, compressed, of shape (boxes, d), and a
budget. It returns `COVERED`, `OPEN`, or `SPENT` if it needed more parts than the budget, or had to keep too
many. Empty parts of a split are never kept (erratum of the paper).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

Int32s = npt.NDArray[np.int32]

COVERED, OPEN, SPENT = 1, 0, -1
# The most parts that a strategy keeps at a time, some hundred megabytes.
MOST_PARTS = 4_000_000


@njit(cache=True, nogil=True)
def overlap(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """True if two boxes overlap."""
    for d in range(len(lo)):  # noqa: SIM110 - a generator isn't compiled
        if lo[d] >= upper[d] or hi[d] <= lower[d]:
            return False
    return True


@njit(cache=True, nogil=True)
def split(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, los: Int32s, his: Int32s, n: int) -> int:
    """Write the parts of a box outside of another, overlapping box from row `n` on; returns the new number of
    rows. `lo` and `hi` are narrowed to the overlap.
    """
    for d in range(len(lo)):
        if lo[d] < lower[d]:
            los[n], his[n] = lo, hi
            his[n, d] = lower[d]
            n += 1
            lo[d] = lower[d]
        if upper[d] < hi[d]:
            los[n], his[n] = lo, hi
            los[n, d] = upper[d]
            n += 1
            hi[d] = upper[d]
    return n


@njit(cache=True, nogil=True)
def with_room(rows: Int32s, wanted: int) -> Int32s:
    """The same rows, with room for `wanted` rows."""
    if wanted <= len(rows):
        return rows
    more = np.empty((2 * wanted, rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more

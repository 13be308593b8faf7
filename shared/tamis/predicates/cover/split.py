"""The step of the split algorithm (kuntschke-2006, section 3.5): a box less another one, compiled.

A strategy takes one box of shape (d,), the boxes that may cover it, as codes of shape (boxes, d), and a
budget. It returns whether they do, or `SPENT` where more parts than the budget were looked at, or too many
held. The empty parts of a split are never kept (erratum of the paper).
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]

COVERED, OPEN, SPENT = 1, 0, -1
# Parts that a strategy may hold at a time, some hundred megabytes.
MOST_PARTS = 4_000_000


@numba.njit(cache=True, nogil=True)
def meets(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """Whether two boxes meet."""
    for d in range(len(lo)):  # noqa: SIM110 - a generator isn't compiled
        if lo[d] >= upper[d] or hi[d] <= lower[d]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def split(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, los: Int32s, his: Int32s, n: int) -> int:
    """Write the parts of a box outside of another that it meets behind row `n`; returns the new number of
    rows. `lo` and `hi` are narrowed to what lies inside.
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


@numba.njit(cache=True, nogil=True)
def room(rows: Int32s, wanted: int) -> Int32s:
    """The same rows with room for as many as are wanted."""
    if wanted <= len(rows):
        return rows
    more = np.empty((2 * wanted, rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more

"""Search for the reading of a recording that made others late, because it moved the watermark past them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Mask


@dataclass(frozen=True)
class LateCause:
    """A reading that made `late` others late. `where`: its position in its file; `time`: its event time;
    `ahead`: the time from the latest of the late readings to it. Times are in microseconds.
    """

    where: str
    time: int
    ahead: int
    late: int


def late_cause(times: NDArray[np.int64], late: Mask) -> tuple[int, int, int] | None:
    """The row that made most others late, its distance in time from the latest of these, and their number;
    None if no row is late. `times` are those of one file, in its order.
    """
    if not late.any():
        return None
    reached = np.maximum.accumulate(times)
    rising = np.concatenate([[True], reached[1:] > reached[:-1]])
    # For each row the row that last moved the watermark before it.
    moved_by = np.maximum.accumulate(np.where(rising, np.arange(len(times)), 0))
    row = int(np.bincount(moved_by[late]).argmax())
    behind = times[late & (moved_by == row)]
    return row, int(times[row] - behind.max()), len(behind)

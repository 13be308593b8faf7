"""Boundaries of panes: the union of the boundaries of all queries that share partial aggregates.

A pane reaches from one boundary to the next, so each pane lies in one pane of each query. The union never has
more boundaries than the separate grids together; the common divisor of the slides may have more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.operators.windows.table import Places
from tamis.plan.model import PaneGrid


def pane_starts(times: Places, grids: Sequence[PaneGrid]) -> Places:
    """The beginning of the pane of each time; at least one grid.

    >>> grids = [PaneGrid("a@1", 1, slide=40), PaneGrid("b@1", 1, slide=60)]
    >>> pane_starts(np.array([0, 59, 60, 79, 80, -1]), grids).tolist()
    [0, 40, 60, 60, 80, -40]
    """
    starts: Places = np.full(len(times), np.iinfo(np.int64).min)
    for slide, offset in {(grid.slide, grid.offset) for grid in grids}:
        np.maximum(starts, (times - offset) // slide * slide + offset, out=starts)
    return starts


def last_boundary(time: int, grids: Sequence[PaneGrid]) -> int:
    """The last boundary up to a time; at least one grid."""
    return max((time - grid.offset) // grid.slide * grid.slide + grid.offset for grid in grids)

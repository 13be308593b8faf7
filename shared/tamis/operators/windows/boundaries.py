"""Boundaries of panes: the union of the boundaries of all queries that share partial aggregates.

A pane reaches from one boundary to the next, so each pane lies in one pane of each query. The union never has
more boundaries than the separate grids together; the common divisor of the slides may have more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tamis.operators.windows.table import Places
from tamis.plan.model import PaneGrid, Plan

# More boundaries of several grids are not compared with each other.
_MOST_COUNTED = 100_000


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


def longest_pane(grids: Sequence[PaneGrid]) -> int:
    """No pane is longer, in microseconds; at least one grid."""
    return min(grid.slide for grid in grids)


def rightly_behind(plan: Plan) -> dict[str, int]:
    """By topic of partial aggregates, the microseconds by which its frontier lies behind the clock at most
    while all is well: it moves only when the watermark, behind by the delay, has passed the end of a pane.
    """
    return {
        topic.name: stream.delay + longest_pane(grids)
        for stream in plan.streams
        for topic in stream.topics
        if topic.partials is not None
        and (grids := [grid for grid in topic.partials.grids if grid.serves(plan.version)])
    }


def most_boundaries(span: int, grids: Sequence[PaneGrid]) -> int:
    """An upper bound of the boundaries in a half-open span of microseconds, wherever it begins.

    >>> grids = [PaneGrid("a@1", 1, slide=40), PaneGrid("b@1", 1, slide=60), PaneGrid("c@1", 1, slide=120)]
    >>> most_boundaries(60, grids), most_boundaries(0, grids)
    (3, 0)
    """
    return sum(-(-span // slide) for slide, _ in _distinct(grids))


def boundaries_in(span: int, grids: Sequence[PaneGrid]) -> float:
    """The mean number of boundaries in a span of microseconds; grids that rarely have common boundaries are
    counted apart.

    >>> grids = [PaneGrid("a@1", 1, slide=40), PaneGrid("b@1", 1, slide=60)]
    >>> boundaries_in(60, grids)
    2.0
    """
    distinct = _distinct(grids)
    period = math.lcm(*(slide for slide, _ in distinct))
    if sum(period // slide for slide, _ in distinct) > _MOST_COUNTED:
        return sum(span / slide for slide, _ in distinct)
    different = {time for slide, first in distinct for time in range(first, period, slide)}
    return len(different) * span / period


def _distinct(grids: Sequence[PaneGrid]) -> list[tuple[int, int]]:
    """Slide and first boundary from 0 on of the grids that have boundaries of their own."""
    known = sorted({(grid.slide, grid.offset % grid.slide) for grid in grids})
    return [
        (slide, first)
        for number, (slide, first) in enumerate(known)
        if all(slide % finer or (first - other) % finer for finer, other in known[:number])
    ]

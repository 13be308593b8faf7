"""Exact matching (kuntschke-2006, section 3.5, Algorithm 4) by any strategy of splitting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates.boxes import Box, inside, overlap
from tamis.predicates.cover import Strategy, covered, decided
from tamis.predicates.cover.coordinate_compression import Int32s, compress
from tamis.predicates.cover.filtered_depth_first import filtered_depth_first
from tamis.predicates.cover.zones import compares
from tamis.predicates.matching.measured_boxes import by_volume, measured_boxes

Rows = npt.NDArray[np.intp]

# Fewer boxes are cheaper to decide one by one than to compress together with the stream's boxes.
_FEW = 8


def exact(
    stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
) -> tuple[Box, ...] | None:
    """The method that Tamis uses: boxes of the query that no single box of the stream contains are decided by
    `filtered_depth_first`.

    A box of the query that isn't covered is added as a whole, not only its uncovered part: overlapping boxes
    cost little, but more boxes cost much (section 3.5). Boxes of the stream inside the added box are dropped.
    """
    left = [box for box in query if not any(inside(box, other) for other in stream)]
    if len(left) < _FEW or any(map(compares, (*stream, *left))):
        return _one_by_one(stream, left)
    near = [i for i, other in enumerate(stream) if any(overlap(box, other) for box in left)]
    boxes = compress([*(stream[i] for i in near), *left])
    rows = _relaxed(filtered_depth_first, boxes.lower, boxes.upper, np.arange(len(near)), check=True)
    if rows is None:
        return None
    gone = set(near) - {near[row] for row in rows if row < len(near)}
    added = [left[row - len(near)] for row in rows if row >= len(near)]
    return (*(box for i, box in enumerate(stream) if i not in gone), *added)


def by_splitting(
    strategy: Callable[..., int], *, check: bool, indexed: bool = False
) -> Callable[..., tuple[Box, ...] | None]:
    """The paper's method: by a strategy over the boxes of the stream, the largest first, with or without the
    quick check and an index.
    """
    by: Strategy = partial(strategy, indexed=indexed)

    def method(
        stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
    ) -> tuple[Box, ...] | None:
        if any(map(compares, (*stream, *query))):
            return _one_by_one(stream, query)  # where attributes are compared, there is one way
        boxes = measured_boxes(stream, query, types)
        order = by_volume(boxes.lower, boxes.upper, boxes.places, len(stream))
        rows = _relaxed(by, boxes.lower, boxes.upper, order, check)
        return None if rows is None else tuple((*stream, *query)[row] for row in sorted(rows.tolist()))

    return method


def _one_by_one(stream: tuple[Box, ...], query: Sequence[Box]) -> tuple[Box, ...] | None:
    relaxed = list(stream)
    changed = False
    for box in query:
        if not covered(box, relaxed):
            relaxed = [other for other in relaxed if not inside(other, box)] + [box]
            changed = True
    return tuple(relaxed) if changed else None


def _relaxed(strategy: Strategy, lower: Int32s, upper: Int32s, rows: Rows, check: bool) -> Rows | None:
    """The rows of boxes that cover both: the stream's `rows`, and the query's after them. None if the
    stream's boxes alone do.
    """
    changed = False
    for row in range(len(rows), len(lower)):
        lo, hi = lower[row], upper[row]
        found = quick_check(lo, hi, lower, upper, rows) if check else 0
        if found > 0:
            continue
        if found < 0 or not decided(strategy, lo, hi, lower[rows], upper[rows]):
            rows = _added(lower, upper, rows, row)
            changed = True
    return rows if changed else None


@njit(cache=True, nogil=True)
def _added(lower: Int32s, upper: Int32s, rows: Rows, new: int) -> Rows:
    """The boxes `rows` that a new box doesn't contain, and the new one."""
    kept = np.empty(len(rows) + 1, np.intp)
    n = 0
    for row in rows:
        holds = True
        for d in range(lower.shape[1]):
            holds &= lower[new, d] <= lower[row, d] and upper[row, d] <= upper[new, d]
        if not holds:
            kept[n] = row
            n += 1
    kept[n] = new
    return kept[: n + 1]


@njit(cache=True, nogil=True)
def quick_check(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, rows: Rows) -> int:
    """Algorithm 6: 1 if one of the boxes `rows` contains a box, 0 if one overlaps it, -1 if none does."""
    found = -1
    for row in rows:
        holds, meets = True, True
        for d in range(len(lo)):
            if lower[row, d] > lo[d] or upper[row, d] < hi[d]:
                holds = False
                if lower[row, d] >= hi[d] or upper[row, d] <= lo[d]:
                    meets = False
                    break
        if holds:
            return 1
        if meets:
            found = 0
    return found

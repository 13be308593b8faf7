"""Exact matching (kuntschke-2006, section 3.5, Algorithm 4) by any strategy of splitting."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numba
import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box, inside
from tamis.predicates.cover import Strategy, covered, decided
from tamis.predicates.cover.codes import Int32s
from tamis.predicates.cover.zones import compares
from tamis.predicates.matching.coded import by_volume, coded

Rows = npt.NDArray[np.intp]


def exact(
    stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
) -> tuple[Box, ...] | None:
    """Ours: only the boxes of the stream that meet a box of the query are made arrays, and split by.

    A box of the query that isn't covered is added whole: overlap costs little, more boxes cost much
    (section 3.5). Boxes of the stream that it holds go.
    """
    relaxed = list(stream)
    changed = False
    for box in query:
        if not covered(box, relaxed):
            relaxed = [other for other in relaxed if not inside(other, box)] + [box]
            changed = True
    return tuple(relaxed) if changed else None


def by_splitting(strategy: Strategy, check: bool) -> Callable[..., tuple[Box, ...] | None]:
    """The paper's: by a strategy over all boxes of the stream, with or without the quick check first."""

    def method(
        stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
    ) -> tuple[Box, ...] | None:
        if any(map(compares, (*stream, *query))):
            return exact(stream, query, types)  # where attributes are compared, there is one way
        boxes = coded(stream, query, types)
        lower, upper = boxes.lower, boxes.upper
        rows = by_volume(lower, upper, boxes.places, len(stream))
        changed = False
        for row in range(len(stream), len(lower)):
            found = quick_check(lower[row], upper[row], lower, upper, rows) if check else 0
            if found > 0:
                continue
            if found < 0 or not decided(strategy, lower[row], upper[row], lower[rows], upper[rows]):
                held = (lower[rows] >= lower[row]).all(axis=1) & (upper[rows] <= upper[row]).all(axis=1)
                rows = np.append(rows[~held], row)
                changed = True
        return tuple((*stream, *query)[row] for row in sorted(rows.tolist())) if changed else None

    return method


@numba.njit(cache=True, nogil=True)
def quick_check(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, rows: Rows) -> int:
    """Algorithm 6: 1 where one of the boxes `rows` holds a box, 0 where one meets it, -1 where none does."""
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

"""Matching box by box (kuntschke-2006, sections 3.2 to 3.4).

These methods are fast, but they don't find out that several boxes of the stream together cover a box of the
query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates.boxes import Box, inside, trimmed
from tamis.predicates.cover.splitting import Int32s, compress
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.ranges import HIGH, Cut

Boxes = tuple[Box, ...]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class MeasuredBoxes(NamedTuple):
    """Boxes of the stream, then of the query: half-open ranges of numbers of cuts, of shape (boxes, d).

    `cuts` by attribute, ascending; `places`, of shape (d, cuts), has their coordinates: -inf or inf where an
    end is unbounded, NaN where values have no distance.
    """

    lower: Int32s
    upper: Int32s
    cuts: Mapping[str, Sequence[Cut]]
    places: Floats


def measured_boxes(stream: Sequence[Box], query: Sequence[Box], types: Mapping[str, Type]) -> MeasuredBoxes:
    """The boxes of both over all attributes that any of them names (at least one)."""
    both = (*stream, *query)
    lower, upper, cuts = compress(both)
    places = np.zeros((len(cuts), max(map(len, cuts.values()))))
    for d, (name, ends) in enumerate(cuts.items()):
        kind = name.type if isinstance(name, ComputedDimension) else types.get(name, Type.DOUBLE)
        places[d, : len(ends)] = [_place(cut, kind) for cut in ends]
    return MeasuredBoxes(lower, upper, cuts, places)


def _place(cut: Cut, kind: Type) -> float:
    if len(cut) == 1:
        return math.inf if cut == HIGH else -math.inf
    return math.nan if kind is Type.VARCHAR else float(cut[1])


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


def simple_relaxation(stream: Boxes, query: Boxes, types: Mapping[str, Type]) -> Boxes | None:
    """HSR (Algorithm 2): boxes that aren't inside a box of the stream are added."""
    added: list[Box] = []
    for box in query:
        if not any(inside(box, other) for other in (*stream, *added)):
            added.append(box)
    return (*stream, *added) if added else None


def complex_relaxation(stream: Boxes, query: Boxes, types: Mapping[str, Type]) -> Boxes | None:
    """HCR (Algorithm 3): for each box that isn't inside a box of the stream, one box is widened. It is the
    box with the fewest unbounded ends afterwards, and among these the one whose volume grows least.
    """
    if not stream:
        return query or None
    boxes = measured_boxes(stream, query, types)
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    changed = np.zeros(len(stream), np.bool_)
    rows = np.arange(len(stream))
    for row in range(len(stream), len(lower)):
        if quick_check(lower[row], upper[row], lower, upper, rows) > 0:
            continue
        best = _cheapest(lower[row], upper[row], lower[: len(stream)], upper[: len(stream)], boxes.places)
        if best >= 0:
            lower[best] = np.minimum(lower[best], lower[row])
            upper[best] = np.maximum(upper[best], upper[row])
            changed[best] = True
    if not changed.any():
        return None
    return tuple(
        trimmed(
            {
                name: (ends[lower[at, d]], ends[upper[at, d]])
                for d, (name, ends) in enumerate(boxes.cuts.items())
            }
        )
        if changed[at]
        else box
        for at, box in enumerate(stream)
    )


@njit(cache=True, nogil=True)
def _cheapest(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, places: Floats) -> int:
    """The box that is best widened to contain another; -1 if one contains it already.

    A dimension that one side lacks is unbounded there (erratum of Algorithm 8), and unbounded ranges don't
    grow.
    """
    boxes, dimensions = lower.shape
    best, fewest, least = 0, 2 * dimensions + 1, math.inf
    lengths = np.empty(dimensions)
    for box in range(boxes):
        ends, growth, holds = 0, 0.0, True
        for d in range(dimensions):
            lengths[d] = places[d, upper[box, d]] - places[d, lower[box, d]]
        for d in range(dimensions):
            first, behind = min(lower[box, d], lo[d]), max(upper[box, d], hi[d])
            ends += (places[d, first] == -math.inf) + (places[d, behind] == math.inf)
            if first == lower[box, d] and behind == upper[box, d]:
                continue
            holds = False
            wide = places[d, behind] - places[d, first]
            if lengths[d] < math.inf:  # and isn't NaN, as of texts
                volume = 1.0
                for other in range(dimensions):
                    if other != d and 0.0 < lengths[other] < math.inf:
                        volume *= lengths[other]
                growth += (wide - lengths[d]) * volume
            lengths[d] = wide
        if holds:
            return -1
        if ends < fewest or (ends == fewest and growth < least):
            best, fewest, least = box, ends, growth
    return best

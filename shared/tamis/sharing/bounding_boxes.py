"""Bounding boxes of filters: a quick check that excludes most pairs before they are compared exactly.

If one filter implies another, its bounding box lies inside the other's bounding box. This check is fast,
because many pairs are checked at once in columns. The exact comparison takes much longer and only runs for
the pairs that pass (the quick check of kuntschke-2006, section 3.2).

The overlap of one box with the boxes of thousands of topics is compiled. Its volume is exact where few boxes
of a topic meet the box, and an upper bound elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.kernels import njit
from tamis.predicates.boxes import Box
from tamis.predicates.cover.zones import compares
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import HIGH, Cut

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Up to this many boxes the inclusion-exclusion sum is taken, which has 2^6 terms.
FEW = 6

# A comparison of two filters with this many clauses each takes milliseconds.
MOST_CLAUSES = 50


@njit(cache=True, nogil=True)
def overlap_volumes(
    lower: Floats, upper: Floats, begins: Int64s, first: Floats, behind: Floats, out: Floats, exact: Bools
) -> None:
    """Set `out` to the volume that each topic shares with the box [first, behind).

    Where `exact` is set to False, `out` is an upper bound. `lower`, `upper`: boxes of shape (n, d); the
    boxes of topic t are the rows begins[t] to begins[t + 1]. The volume of a union is computed by
    inclusion-exclusion.
    """
    d = lower.shape[1]
    met_lower, met_upper = np.empty((FEW, d)), np.empty((FEW, d))
    for topic in range(len(begins) - 1):
        count, total = 0, 0.0
        for box in range(begins[topic], begins[topic + 1]):
            size = 1.0
            for k in range(d):
                size *= max(0.0, min(upper[box, k], behind[k]) - max(lower[box, k], first[k]))
            if size > 0.0:
                if count < FEW:
                    for k in range(d):
                        met_lower[count, k] = max(lower[box, k], first[k])
                        met_upper[count, k] = min(upper[box, k], behind[k])
                count += 1
                total += size
        exact[topic] = count <= FEW
        if 1 < count <= FEW:
            total = 0.0
            for some in range(1, 1 << count):
                size, sign = 1.0, -1.0
                for box in range(count):
                    if some >> box & 1:
                        sign = -sign
                for k in range(d):
                    low, high = 0.0, 1.0
                    for box in range(count):
                        if some >> box & 1:
                            low, high = max(low, met_lower[box, k]), min(high, met_upper[box, k])
                    size *= max(0.0, high - low)
                total += sign * size
        out[topic] = total


@dataclass(frozen=True)
class BoxFilter:
    """A filter as a union of boxes, with their bounding box in the attributes that all boxes limit.

    `plain`: there is at least one box, and no box compares two attributes with each other.
    """

    predicate: Predicate
    bounding_box: Box
    plain: bool


def box_filter(filter_: Expr) -> BoxFilter | None:
    """The filter as boxes; None if it has no such form, or more than `MOST_CLAUSES` clauses."""
    try:
        found = Predicate.of(filter_, budget=MOST_CLAUSES)
    except RefusedError:
        return None
    plain = bool(found.boxes) and not any(map(compares, found.boxes))
    return BoxFilter(found, _bounding_box(found.boxes), plain)


def _bounding_box(boxes: tuple[Box, ...]) -> Box:
    """The least box around all boxes; without any boxes, the box without limits."""
    return {
        name: (min(box[name][0] for box in boxes), max(box[name][1] for box in boxes))
        for name in (boxes[0] if boxes else ())
        if all(name in box for box in boxes)
    }


def may_imply(inner: Sequence[BoxFilter | None], outer: Sequence[BoxFilter | None]) -> Bools:
    """Matrix (inner, outer): False if the filter of `inner` certainly doesn't imply the one of `outer`."""
    boxes = [one.bounding_box if one is not None and one.plain else None for one in (*inner, *outer)]
    found = np.ones((len(inner), len(outer)), np.bool_)
    for name in {name for box in boxes if box is not None for name in box}:
        ends = [box.get(name) if box is not None else None for box in boxes]
        if any(isinstance(cut[-1], str) for pair in ends if pair for cut in pair):
            continue  # filters on texts are few: the exact comparison decides
        lower = np.array([-math.inf if pair is None else _number(pair[0]) for pair in ends])
        upper = np.array([math.inf if pair is None else _number(pair[1]) for pair in ends])
        # A filter without a bounding box may imply every filter, and may be implied by every filter.
        known = np.array([box is not None for box in boxes[: len(inner)]], np.bool_)
        n = len(inner)
        beyond = (lower[:n, None] < lower[None, n:]) | (upper[:n, None] > upper[None, n:])
        found &= ~(beyond & known[:, None])
    return found


def _number(cut: Cut) -> float:
    """A number for the cut, in the order of cuts: a greater cut never has a smaller number."""
    if len(cut) == 1:
        return math.inf if cut == HIGH else -math.inf
    return float(cut[1])

"""Boxes of a stream and a query as arrays, with the coordinates of their cuts, for volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates.boxes import Box
from tamis.predicates.cover.coordinate_compression import Int32s, compress
from tamis.predicates.differences import Difference
from tamis.predicates.ranges import HIGH, Cut

Floats = npt.NDArray[np.float64]


class MeasuredBoxes(NamedTuple):
    """Boxes of the stream, then of the query: half-open ranges of numbers of cuts, of shape (boxes, d).

    `cuts` by attribute, ascending; `places`, of shape (d, cuts), has their coordinates: -inf or inf where an
    end is unbounded, NaN where values have no distance.
    """

    lower: Int32s
    upper: Int32s
    cuts: Mapping[str, Sequence[Cut]]
    places: Floats


@njit(cache=True, nogil=True)
def by_volume(lower: Int32s, upper: Int32s, places: Floats, boxes: int) -> npt.NDArray[np.int64]:
    """The first `boxes` boxes, the largest first: by unbounded ends, then by the volume of finite ranges.

    The largest boxes cover the most, so splitting by them first leaves little (kuntschke-2006, section 6.1).
    """
    unbounded, volume = np.zeros(boxes), np.ones(boxes)
    for box in range(boxes):
        for d in range(lower.shape[1]):
            length = places[d, upper[box, d]] - places[d, lower[box, d]]
            if length < math.inf:
                volume[box] *= length
            else:
                unbounded[box] += 1.0
    order = np.argsort(-volume, kind="mergesort")
    return order[np.argsort(-unbounded[order], kind="mergesort")]


def measured_boxes(stream: Sequence[Box], query: Sequence[Box], types: Mapping[str, Type]) -> MeasuredBoxes:
    """The boxes of both over all attributes that any of them names (at least one)."""
    both = (*stream, *query)
    lower, upper, cuts = compress(both)
    places = np.zeros((len(cuts), max(map(len, cuts.values()))))
    for d, (name, ends) in enumerate(cuts.items()):
        kind = name.type if isinstance(name, Difference) else types.get(name, Type.DOUBLE)
        places[d, : len(ends)] = [_place(cut, kind) for cut in ends]
    return MeasuredBoxes(lower, upper, cuts, places)


def _place(cut: Cut, kind: Type) -> float:
    if len(cut) == 1:
        return math.inf if cut == HIGH else -math.inf
    return math.nan if kind is Type.VARCHAR else float(cut[1])

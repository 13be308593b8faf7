"""Coordinate compression: boxes as arrays of the numbers of their cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.predicates.boxes import Box
from tamis.predicates.ranges import ANYTHING, Cut

Int32s = npt.NDArray[np.int32]


class CompressedBoxes(NamedTuple):
    """Half-open ranges of numbers of cuts, of shape (boxes, attributes), and the cuts of each attribute,
    ascending.
    """

    lower: Int32s
    upper: Int32s
    cuts: Mapping[str, Sequence[Cut]]


def compress(boxes: Sequence[Box]) -> CompressedBoxes:
    """The boxes over all attributes that any of them names, ascending (at least one)."""
    lower, upper = [], []
    cuts: dict[str, Sequence[Cut]] = {}
    for name in sorted(set().union(*boxes)) or [""]:
        ranges = [box.get(name, ANYTHING) for box in boxes]
        firsts, behinds = [found[0] for found in ranges], [found[1] for found in ranges]
        cuts[name] = ends = sorted({*firsts, *behinds})
        number = dict(zip(ends, range(len(ends)), strict=True))
        lower.append([number[cut] for cut in firsts])
        upper.append([number[cut] for cut in behinds])
    return CompressedBoxes(_by_box(lower), _by_box(upper), cuts)


def _by_box(rows: list[list[int]]) -> Int32s:
    return np.ascontiguousarray(np.array(rows, np.int32).T)

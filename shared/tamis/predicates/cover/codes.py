"""Boxes as arrays: the cuts of each attribute that occur on either side, numbered in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.predicates.boxes import Box
from tamis.predicates.ranges import ANYTHING

Int32s = npt.NDArray[np.int32]


class Codes(NamedTuple):
    """Half-open ranges of numbers of cuts, of shape (boxes, attributes)."""

    lower: Int32s
    upper: Int32s


def codes(*sides: Sequence[Box]) -> tuple[Codes, ...]:
    """The boxes of each side, over the attributes that any of them names (at least one)."""
    names = sorted({name for boxes in sides for box in boxes for name in box}) or [""]
    shapes = [(len(boxes), len(names)) for boxes in sides]
    found = tuple(Codes(np.empty(shape, np.int32), np.empty(shape, np.int32)) for shape in shapes)
    for d, name in enumerate(names):
        ranges = [[box.get(name, ANYTHING) for box in boxes] for boxes in sides]
        cuts = sorted({cut for some in ranges for one in some for cut in one})
        number = {cut: at for at, cut in enumerate(cuts)}
        for made, some in zip(found, ranges, strict=True):
            made.lower[:, d] = [number[lower] for lower, _ in some]
            made.upper[:, d] = [number[upper] for _, upper in some]
    return found

"""Boxes as arrays: the cuts of each attribute that occur on either side, numbered in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.predicates.boxes import Box
from tamis.predicates.ranges import ANYTHING, Cut

Int32s = npt.NDArray[np.int32]


class Codes(NamedTuple):
    """Half-open ranges of numbers of cuts, of shape (boxes, attributes)."""

    lower: Int32s
    upper: Int32s


def codes(*sides: Sequence[Box]) -> tuple[Codes, ...]:
    """The boxes of each side, over the attributes that any of them names, ascending (at least one)."""
    cuts = cuts_of(*sides)
    shapes = [(len(boxes), len(cuts)) for boxes in sides]
    found = tuple(Codes(np.empty(shape, np.int32), np.empty(shape, np.int32)) for shape in shapes)
    for d, (name, ends) in enumerate(cuts.items()):
        number = {cut: at for at, cut in enumerate(ends)}
        for made, boxes in zip(found, sides, strict=True):
            made.lower[:, d] = [number[box.get(name, ANYTHING)[0]] for box in boxes]
            made.upper[:, d] = [number[box.get(name, ANYTHING)[1]] for box in boxes]
    return found


def cuts_of(*sides: Sequence[Box]) -> dict[str, list[Cut]]:
    """The cuts of each attribute, ascending, by its name."""
    names = sorted({name for boxes in sides for box in boxes for name in box}) or [""]
    return {
        name: sorted({cut for boxes in sides for box in boxes for cut in box.get(name, ANYTHING)})
        for name in names
    }

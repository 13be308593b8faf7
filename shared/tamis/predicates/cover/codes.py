"""Boxes as arrays: the cuts of each attribute that occur on either side, numbered in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def codes(*sides: Sequence[Box], cuts: Mapping[str, Sequence[Cut]] | None = None) -> tuple[Codes, ...]:
    """The boxes of each side, over the attributes that any of them names, ascending (at least one). `cuts`:
    what `cuts_of` says of them, where it is known.
    """
    lower: tuple[list[list[int]], ...] = tuple([] for _ in sides)
    upper: tuple[list[list[int]], ...] = tuple([] for _ in sides)
    for name, ends in (cuts or cuts_of(*sides)).items():
        number = {cut: at for at, cut in enumerate(ends)}
        for at, boxes in enumerate(sides):
            ranges = [box.get(name, ANYTHING) for box in boxes]
            lower[at].append([number[found[0]] for found in ranges])
            upper[at].append([number[found[1]] for found in ranges])
    return tuple(
        Codes(np.array(lo, np.int32).T.copy(), np.array(hi, np.int32).T.copy())
        for lo, hi in zip(lower, upper, strict=True)
    )


def cuts_of(*sides: Sequence[Box]) -> dict[str, list[Cut]]:
    """The cuts of each attribute, ascending, by its name."""
    names = sorted({name for boxes in sides for box in boxes for name in box}) or [""]
    return {
        name: sorted({cut for boxes in sides for box in boxes for cut in box.get(name, ANYTHING)})
        for name in names
    }

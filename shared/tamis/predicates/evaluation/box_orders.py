"""Two ways to sort the boxes of a filter for faster evaluation: neighbours together, or the largest first."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tamis.predicates.bits import WORD
from tamis.predicates.boxes import Box
from tamis.predicates.ranges import HIGH

Int64s = npt.NDArray[np.int64]


def spatial_order(lower: Int64s, upper: Int64s) -> Int64s:
    """An order with neighbouring boxes together, as in a k-d tree: boxes are halved at the median of the
    widest dimension until each part fits into a word of bits. `lower`, `upper`: keys of shape (boxes, d).
    """
    middles = lower / 2.0 + upper / 2.0
    out: list[Int64s] = []
    parts = [np.arange(len(lower))]
    while parts:
        rows = parts.pop()
        if len(rows) <= WORD or not middles.shape[1]:
            out.append(rows)
            continue
        widest = int(np.ptp(middles[rows], axis=0).argmax())
        rows = rows[np.argsort(middles[rows, widest], kind="stable")]
        half = (len(rows) // WORD + 1) // 2 * WORD
        parts += [rows[half:], rows[:half]]
    return np.concatenate(out)


def size(box: Box) -> tuple[int, float]:
    """A sort key by which the largest box is first: the number of its bounded ends, then the negated volume
    of its finite ranges (kuntschke-2006, section 6.1).
    """
    bounded, volume = 0, 1.0
    for lower, upper in box.values():
        if upper != HIGH and len(lower) == len(upper) == 2 and not isinstance(lower[1], str):
            bounded += 2
            volume *= float(upper[1]) - float(lower[1])
        else:
            bounded += (len(lower) == 2) + (upper != HIGH)
    return bounded, -volume if math.isfinite(volume) else -math.inf

"""Quasi-Monte-Carlo estimate of the volume of a union of thousands of boxes.

The same points are used each time, so the estimate does not depend on the order in which boxes were added,
and the cost of adding or removing one box does not depend on the number of boxes.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

# With this many evenly spread points the error of a share is a few thousandths.
POINTS = 1 << 14


@cache
def points(dimensions: int) -> Floats:
    """Points that fill the unit cube evenly, of shape (POINTS, d).

    They are the fractional parts of the multiples of a vector of powers of 1/g, where g^(d + 1) = g + 1
    (Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018).
    """
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (dimensions + 1))
    steps = g ** -np.arange(1.0, dimensions + 1)
    found: Floats = (0.5 + np.arange(1, POINTS + 1)[:, None] * steps[None, :]) % 1.0
    return found


def estimated_volume(lower: Floats, upper: Floats) -> float:
    """The estimated volume of a union of boxes; `lower`, `upper`: of shape (boxes, d), no box is empty."""
    first, size = lower.min(axis=0), upper.max(axis=0) - lower.min(axis=0)
    at = points(lower.shape[1])
    covered = count_covered((lower - first) / size, (upper - first) / size, at)
    return float(size.prod() * covered / len(at))


@njit(cache=True, nogil=True)
def count_hits(lower: Floats, upper: Floats, at: Floats, by: int, hits: Int32s) -> None:
    """Add `by` to the hits of each point for every box [lower, upper) that contains it."""
    for box in range(lower.shape[0]):
        for i in range(at.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                hits[i] += by


@njit(cache=True, nogil=True)
def count_covered(lower: Floats, upper: Floats, at: Floats) -> int:
    """The number of points that lie in at least one box."""
    covered = 0
    for i in range(at.shape[0]):
        for box in range(lower.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                covered += 1
                break
    return covered

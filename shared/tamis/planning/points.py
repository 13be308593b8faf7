"""How much thousands of boxes let pass together, estimated by the same points each time: how many boxes hold
a point doesn't depend on the order in which they came, and a box more or less costs the same among many.
"""

from __future__ import annotations

from functools import cache

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

# As evenly as they lie, a share is told to a few thousandths.
POINTS = 1 << 14


@cache
def points(dimensions: int) -> Floats:
    """Points that fill the unit cube evenly, of shape (POINTS, d): multiples of a vector made of the powers
    of 1/g, without their whole parts, where g^(d + 1) = g + 1 (Roberts, "The unreasonable effectiveness of
    quasirandom sequences", 2018).
    """
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (dimensions + 1))
    steps = g ** -np.arange(1.0, dimensions + 1)
    found: Floats = (0.5 + np.arange(1, POINTS + 1)[:, None] * steps[None, :]) % 1.0
    return found


def sampled(lower: Floats, upper: Floats) -> float:
    """The volume of a union of boxes; `lower`, `upper`: of shape (boxes, d), none of them empty."""
    first, size = lower.min(axis=0), upper.max(axis=0) - lower.min(axis=0)
    at = points(lower.shape[1])
    held = count_held((lower - first) / size, (upper - first) / size, at)
    return float(size.prod() * held / len(at))


@numba.njit(cache=True, nogil=True)
def count_hits(lower: Floats, upper: Floats, at: Floats, by: int, hits: Int32s) -> None:
    """Add `by` to the hits of each point for every box [lower, upper) that holds it."""
    for box in range(lower.shape[0]):
        for i in range(at.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                hits[i] += by


@numba.njit(cache=True, nogil=True)
def count_held(lower: Floats, upper: Floats, at: Floats) -> int:
    """How many points some box holds."""
    held = 0
    for i in range(at.shape[0]):
        for box in range(lower.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                held += 1
                break
    return held

"""Overlap of one box with the boxes of thousands of topics, compiled.

The volume of the overlap is exact where few boxes of a topic meet the box, and an upper bound elsewhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Up to this many boxes the inclusion-exclusion sum is taken, which has 2^6 terms.
FEW = 6


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

"""How much of one box each of thousands of topics has, compiled: exact where few of its boxes meet it."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Boxes of a topic that meet the one, up to which all of their intersections are taken: 2^6 of them.
FEW = 6


@numba.njit(cache=True, nogil=True)
def common(
    lower: Floats, upper: Floats, begins: Int64s, first: Floats, behind: Floats, out: Floats, exact: Bools
) -> None:
    """Set `out` to the volume that each topic has in common with the box [first, behind), and `exact`, or to
    more than it. `lower`, `upper`: boxes of shape (n, d); those of topic t are rows begins[t] to
    begins[t + 1].

    The volume of a union is that of its boxes less that of their intersections by two, and so on.
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

"""Standard evaluation: one box after the other until one holds the tuple (kuntschke-2006, Algorithm 5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def scan(keys: Int64s, lower: Int64s, upper: Int64s, boxes: Int64s, out: Bools) -> int:
    """Set `out` where one of the boxes contains the tuple. Returns the number of tests of a box.

    `keys`: (d, n); `lower`, `upper`: (boxes, d), half-open; `boxes`: the boxes to try, in this order.
    """
    looked = 0
    dimensions = keys.shape[0]
    for row in range(keys.shape[1]):
        hit = False
        for box in boxes:
            looked += 1
            hit = True
            for d in range(dimensions):
                key = keys[d, row]
                if key < lower[box, d] or key >= upper[box, d]:
                    hit = False
                    break
            if hit:
                break
        out[row] = hit
    return looked

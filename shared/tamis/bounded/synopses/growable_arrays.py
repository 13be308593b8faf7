"""Arrays that grow by doubling, so that adding rows costs what the rows cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def grown(array: NDArray[Any], size: int, *, axis: int = 0, fill: object = 0) -> NDArray[Any]:
    """An array with room for `size` along an axis, filled where it is new.

    >>> grown(np.array([7, 8, 9]), 4).tolist()
    [7, 8, 9, 0, 0, 0]
    """
    have = array.shape[axis]
    if size <= have:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, 2 * have) - have
    return np.concatenate([array, np.full(shape, fill, array.dtype)], axis)

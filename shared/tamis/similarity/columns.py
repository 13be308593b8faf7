"""Columns of keys and readings for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def column(values: npt.ArrayLike, kind: type[np.generic]) -> npt.NDArray[Any]:
    """The values as an array that kernels take: of this type, contiguous, and writable, since numba compiles
    a kernel once more for an array that isn't. None becomes NaN.

    Raises `TypeError`, `ValueError` or `OverflowError` for values that aren't numbers.
    """
    return np.require(np.ascontiguousarray(values, dtype=kind), requirements=("C", "A", "W"))

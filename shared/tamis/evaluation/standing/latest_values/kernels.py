"""Compiled inner loop of ASOF JOIN: the last tuple of a key at or before each of many times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]


@njit(cache=True)
def latest(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    times: Ints, codes: Ints, asked_times: Ints, asked_codes: Ints, last: Ints
):
    """The last row of each asked code with a time up to the asked one; -1 if no row has both.

    `times` and `asked_times` ascend. `codes` are 0 or more; a negative asked code has no row. `last` has -1
    for each code, and afterwards the last row of each code.
    """
    found = np.full(len(asked_times), -1, np.int64)
    row = 0
    for at in range(len(asked_times)):
        while row < len(times) and times[row] <= asked_times[at]:
            last[codes[row]] = row
            row += 1
        if asked_codes[at] >= 0:
            found[at] = last[asked_codes[at]]
    while row < len(times):
        last[codes[row]] = row
        row += 1
    return found

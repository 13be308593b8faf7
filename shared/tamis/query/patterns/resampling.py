"""Linear resampling of readings with times at a fixed step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np


def median_step(times: Sequence[int]) -> int:
    """The median distance of increasing times, rounded down, at least 1.

    >>> median_step([0, 10, 20, 35])
    10
    """
    distances = sorted(later - earlier for earlier, later in pairwise(times))
    middle = len(distances) // 2
    return max(1, (distances[middle] + distances[~middle]) // 2)


def resampled(times: Sequence[int], values: Sequence[float], step: int) -> tuple[float, ...]:
    """The values at the first time and every `step` after it, up to the last time. Times increase; between
    two of them, values are interpolated linearly.

    >>> resampled([0, 10, 30], [1.0, 2.0, 4.0], 10)
    (1.0, 2.0, 3.0, 4.0)
    """
    # Counted from the first time: such differences are exact as doubles.
    offsets = np.array([time - times[0] for time in times], dtype=np.float64)
    wanted = np.arange(0, times[-1] - times[0] + 1, step, dtype=np.float64)
    return tuple(np.interp(wanted, offsets, np.array(values, dtype=np.float64)).tolist())

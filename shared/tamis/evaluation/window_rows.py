"""Hopping and tumbling windows that contain all tuples of a combination."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.query.model import Window

Times = NDArray[np.int64]


def shared(window: Window, earliest: Times, latest: Times) -> tuple[Times, Times]:
    """Starts of the first and the last window that contain both times. If last < first, no window contains
    both.

    >>> first, last = shared(Window(10, 30), np.array([25]), np.array([31]))
    >>> first.tolist(), last.tolist()
    ([10], [20])
    """
    slide, offset = window.slide, window.offset
    first = ((latest - offset - window.size) // slide + 1) * slide
    return first + offset, (earliest - offset) // slide * slide + offset


def rows(window: Window, times: Sequence[Times]) -> tuple[NDArray[np.int64], Times]:
    """One row for each combination and each window that contains all of its tuples: the number of the
    combination, and the start of the window. `times`: those of the combinations' tuples, one array per input.

    >>> which, start = rows(Window(10, 30), [np.array([25, 60]), np.array([31, 60])])
    >>> which.tolist(), start.tolist()
    ([0, 0, 1, 1, 1], [10, 20, 40, 50, 60])
    """
    first, last = shared(window, np.min(times, axis=0), np.max(times, axis=0))
    count = np.maximum((last - first) // window.slide + 1, 0)
    which = np.repeat(np.arange(len(first)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, first[which] + place * window.slide


def last_end(window: Window, times: Times) -> Times:
    """The end (not included) of the last window that contains each time."""
    return (times - window.offset) // window.slide * window.slide + window.offset + window.size

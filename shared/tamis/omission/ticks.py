"""Spans of event time in whole ticks, exact over all of int64.

A difference of two int64 numbers needs up to 64 bits without a sign. All comparisons of spans with the
omission interval therefore run in uint64, where the difference of an earlier and a later time never
overflows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEVER = np.int64(2**63 - 1)
"""The last tick: as a deadline it never comes, as a watermark it has passed everything."""

_LONGEST = 2**64 - 1


def as_span(interval: int) -> np.uint64:
    """`interval` in ticks as a kernel takes it; one that is longer than every span of int64 is cut to the
    longest."""
    return np.uint64(min(interval, _LONGEST))


def as_delay(max_delay: int | None) -> np.int64:
    """`max_delay` as a kernel takes it, `NEVER` for none."""
    return NEVER if max_delay is None else np.int64(min(max_delay, int(NEVER)))


@njit(cache=True, inline="always")
def span(earlier: np.int64, later: np.int64) -> np.uint64:
    """`later - earlier`, for `earlier <= later`."""
    return np.uint64(later) - np.uint64(earlier)


@njit(cache=True)
def passed(watermark: np.int64, start: np.int64, length: np.uint64) -> bool:
    """Whether no tuple with a time up to `start + length` can come any more that isn't late."""
    return bool(watermark == NEVER or (watermark > start and span(start, watermark) > length))


@njit(cache=True)
def after(start: np.int64, length: np.uint64) -> np.int64:
    """`start + length`, at most `NEVER`."""
    return np.int64(np.uint64(start) + length) if span(start, NEVER) > length else NEVER

"""Spans of event time in whole ticks, exact over all of int64.

A difference of two int64 numbers needs up to 64 bits without a sign. All comparisons of spans with the
omission interval therefore run in uint64, where the difference of an earlier and a later time never
overflows.
"""

from __future__ import annotations

import numpy as np

NEVER = np.int64(2**63 - 1)
"""The last tick. As a deadline it never comes; as a watermark it has passed every tuple."""

_LONGEST = 2**64 - 1


def as_span(interval: int) -> np.uint64:
    """The interval in ticks as the kernels take it, at most as long as the longest span of int64."""
    return np.uint64(min(interval, _LONGEST))


def as_delay(max_delay: int | None) -> np.int64:
    """The delay as the kernels take it, `NEVER` for none."""
    return NEVER if max_delay is None else np.int64(min(max_delay, int(NEVER)))

"""The limit on event times ahead of the clock.

One reading from the future would advance the watermark, and all following readings would be late.
"""

from __future__ import annotations

import numpy as np

from tamis.plan.model import StreamPlan
from tamis_edge.core.messages.keys import Int64s


def limit(stream: StreamPlan, replayed: bool) -> int | None:
    """The limit in microseconds; None if any time is allowed.

    The event times of a recording (`replayed`) are independent of the clock. Only a limit that the stream
    declares applies to them.
    """
    exempt = stream.time is None or (replayed and not stream.max_ahead_given)
    return None if exempt else stream.max_ahead


def too_far(times: Int64s, now: int, most: int | None) -> np.ndarray:
    """A mask of the event times that are further ahead of the clock `now` than `most`; all microseconds."""
    if most is None:
        return np.zeros(len(times), np.bool_)
    found: np.ndarray = times > now + most
    return found

"""The limit on event times ahead of the clock.

One reading from the future would advance the watermark, and all following readings would be late.
"""

from __future__ import annotations

import numpy as np

from tamis.omission.columns import Int64s
from tamis.plan.model import StreamPlan

_MINUTE = 60_000_000
# Time zones differ from UTC by multiples of a quarter of an hour, up to 14 hours.
_QUARTER, _MOST_QUARTERS = 15 * _MINUTE, 14 * 4


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


def ahead_of_clock(ahead: int, most: int) -> str:
    """A description of an event time that is `ahead` of the clock, further than `most`; both microseconds. If
    the distance is that of a time zone, it is the probable cause.

    >>> ahead_of_clock(61_000_000, 60_000_000)
    "61.000 s (1.0 minutes) ahead of this edge's clock; max_ahead is 60 s"
    """
    said = (
        f"{ahead / 1e6:.3f} s ({ahead / _MINUTE:,.1f} minutes) ahead of this edge's clock;"
        f" max_ahead is {most / 1e6:g} s"
    )
    quarters = round(ahead / _QUARTER)
    if not 0 < quarters <= _MOST_QUARTERS or abs(ahead - quarters * _QUARTER) > _MINUTE:
        return said
    zone = f"+{quarters // 4:02}:{quarters % 4 * 15:02}"
    return (
        f"{said}; it is probably the local time of a zone that is {zone} ahead of UTC: send times in UTC, or"
        f" with their zone, such as 2026-01-31T12:00:00{zone}"
    )

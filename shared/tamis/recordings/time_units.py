"""Units of times that are numbers since 1970, and the unit that makes a number plausible."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

TimeUnit = Literal["s", "ms", "us", "ns"]
PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

# Plausible readings lie between these, in microseconds.
Y2000 = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
Y2100 = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


def plausible_unit(ticks: int, unit: TimeUnit) -> TimeUnit | None:
    """The other unit in which a number, which is `ticks` microseconds when read in `unit`, lies between 2000
    and 2100. At most one unit does.

    >>> plausible_unit(1_700_000_000, "us"), plausible_unit(1_700_000_000, "s")
    ('s', None)
    """
    for other, per_second in PER_SECOND.items():
        if other != unit and Y2000 <= ticks * PER_SECOND[unit] // per_second < Y2100:
            return other
    return None

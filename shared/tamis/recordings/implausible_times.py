"""Detection of implausible times: a time that is read in a wrong unit lies before 2000 or after 2100."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.recordings.time_units import PER_SECOND, Y2000, Y2100, TimeUnit, plausible_unit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS: dict[TimeUnit, str] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


def implausibility(times: NDArray[Any], unit: TimeUnit | None) -> str | None:
    """A description of implausible times, in microseconds since 1970; None if all are plausible.

    `unit`: the unit in which numbers were read; None for dates. At most one other unit puts a time between
    2000 and 2100.
    """
    if not len(times) or (times.min() >= Y2000 and times.max() < Y2100):
        return None
    far = np.flatnonzero(implausible(times))
    return description(int(times[far[0]]), len(far), len(times), unit)


def implausible(times: NDArray[Any]) -> NDArray[np.bool_]:
    """The times before 2000 or after 2100, in microseconds since 1970, as a mask."""
    found: NDArray[np.bool_] = (times < Y2000) | (times >= Y2100)
    return found


def description(first: int, far: int, count: int, unit: TimeUnit | None) -> str:
    """A description of `far` implausible times among `count`, of which `first` is the first."""
    which = "all times lie" if far == count else f"{far:,} of {count:,} times lie"
    side = "before 2000" if first < Y2000 else "after 2100"
    said = f"{which} {side}, the first of them at {date(first)}"
    if unit is None:
        return said
    said += f"; numbers are read as {_WORDS[unit]}"
    fits = plausible_unit(first, unit)
    if fits is None:
        return said
    other = first * PER_SECOND[unit] // PER_SECOND[fits]
    return f"{said}; as {_WORDS[fits]} ({fits}) it would be {date(other)}"


def date(ticks: int) -> str:
    """Microseconds since 1970 as a time of ISO 8601 in UTC, without fractions of a second."""
    try:
        return (_EPOCH + timedelta(microseconds=ticks)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return "a time outside the calendar"

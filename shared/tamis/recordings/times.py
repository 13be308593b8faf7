"""Times of readings: units of numbers, texts of ISO 8601, and times that are implausible.

A time that is read in a wrong unit lies before 2000 or after 2100.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import NDArray

TimeUnit = Literal["s", "ms", "us", "ns"]
PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

# Plausible readings lie between these, in microseconds.
Y2000 = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
Y2100 = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

_WORDS: dict[TimeUnit, str] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


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


def iso_ticks(texts: Any) -> Any:
    """Arrow's texts of ISO 8601 as microseconds, where all have a zone or none has.

    Raises ArrowInvalid for all else.
    """
    try:
        ticks = texts.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        ticks = texts.cast(pa.timestamp("us"))
    return ticks.cast(pa.int64())


def column_ticks(texts: Sequence[str]) -> npt.NDArray[np.int64] | None:
    """A column of texts as microseconds; None if `iso_ticks` can't convert all of them.

    >>> column_ticks(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00+01:00"]).tolist()
    [1000000, 0]
    >>> column_ticks(["noon"])
    """
    try:
        found: npt.NDArray[np.int64] = iso_ticks(pa.array(texts)).to_numpy()
    except pa.ArrowInvalid:
        return None
    return found


def iso_time(text: str) -> int:
    """A time of ISO 8601 in microseconds, UTC where no zone is given. Raises ValueError for what is none.

    >>> iso_time("1970-01-01t00:00:01z")  # RFC 3339 also has small letters
    1000000
    """
    text = text.upper()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        # It has no year 0, which Arrow takes where all texts are alike.
        return int(iso_ticks(pa.array([text]))[0].as_py())
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _TICK


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

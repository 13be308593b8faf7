"""Parts of instants, in microseconds since 1970-01-01 UTC: the fields of dates, and the starts of units.

Dates are those of the Gregorian calendar from year 1 to 9999. Other instants have no fields.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Instants = NDArray[np.int64]

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 and 9999
_DAY = 86_400_000_000
# Units of fixed length, in microseconds; a week starts on Monday.
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": _DAY,
    "week": 7 * _DAY,
}
TRUNCATED_TO = (*UNITS, "month", "quarter", "year")
FIELDS = (
    *("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "isoyear"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
_MONDAY = 4 * _DAY  # 1970-01-05


def valid(instants: Instants) -> NDArray[np.bool_]:
    """Mask of the instants in the years 1 to 9999."""
    return (instants >= FIRST) & (instants <= LAST)


def field(name: str, instants: Instants) -> Instants:
    """A field of `FIELDS` of valid instants. As in DuckDB, milliseconds and microseconds include the seconds.

    >>> field("hour", np.array([-1])).tolist(), field("isodow", np.array([0])).tolist()
    ([23], [4])
    """
    days: Instants = instants // _DAY
    time: Instants = instants % _DAY
    if name in ("hour", "minute"):
        whole: Instants = time // UNITS[name] % (24 if name == "hour" else 60)
        return whole
    if name in ("second", "millisecond", "microsecond"):
        since_minute: Instants = time % UNITS["minute"] // UNITS[name]
        return since_minute
    since_monday: Instants = (days + 3) % 7
    if name in ("dow", "isodow"):
        return np.where((name == "dow") & (since_monday == 6), 0, since_monday + 1)
    if name in ("week", "isoyear"):
        # The year of a week is that of its Thursday.
        days = days - since_monday + 3
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    number: Instants = months.astype(np.int64)
    year_start: Instants = dates.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    found: Instants
    match name:
        case "year" | "isoyear":
            found = number // 12 + 1970
        case "quarter":
            found = number % 12 // 3 + 1
        case "month":
            found = number % 12 + 1
        case "day":
            found = (dates - months).astype(np.int64) + 1
        case "doy":
            found = days - year_start + 1
        case _:
            found = (days - year_start) // 7 + 1
    return found


def truncated(unit: str, instants: Instants) -> Instants:
    """The start of the unit of `TRUNCATED_TO` that contains each valid instant.

    >>> truncated("hour", np.array([3_600_000_001, -1])).tolist()
    [3600000000, -3600000000]
    """
    if unit == "week":
        return instants - (instants - _MONDAY) % UNITS["week"]
    if unit in UNITS:
        return instants - instants % UNITS[unit]
    months = np.floor_divide(instants, _DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    months -= months % {"month": 1, "quarter": 3, "year": 12}[unit]
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) * _DAY


def text_of(instant: int) -> str | None:
    """An instant as CAST to VARCHAR writes it; None outside of the years 1 to 9999.

    >>> text_of(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    if not FIRST <= instant <= LAST:
        return None
    seconds, rest = divmod(instant, 1_000_000)
    moment = str(np.datetime64(seconds, "s")).replace("T", " ")
    return f"{moment}.{rest:06}".rstrip("0") if rest else moment

"""Durations, rates and times: from text to integers of microseconds, without floating point."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from tamis.declarations.definitions import Rate
from tamis.errors import InputError

_MICROSECONDS = {
    ("us", "µs", "μs", "microsecond", "microseconds"): 1,  # the micro sign, and the Greek letter
    ("ms", "msec", "millisecond", "milliseconds"): 1_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000,
    ("m", "min", "mins", "minute", "minutes"): 60_000_000,
    ("h", "hr", "hour", "hours"): 3_600_000_000,
    ("d", "day", "days"): 86_400_000_000,
    ("w", "week", "weeks"): 604_800_000_000,
}
UNITS = {name: size for names, size in _MICROSECONDS.items() for name in names}

# A time plus or minus a duration must fit into 64 bits; a hundred years leave much room.
LONGEST = 100 * 366 * 86_400_000_000

_PART = re.compile(r"\s*(?P<number>[0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})\s*(?P<unit>[A-Za-zµμΜ]*)\s*")
_RATE = re.compile(r"\s*(?P<count>[0-9]{1,18})\s*/\s*(?P<per>\S.*)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "write a number and a unit, such as '250 ms', '30s', '5 minutes' or '1 hour 30 minutes'"


def parse_duration(text: str) -> int:
    """A duration in microseconds, the sum of its parts; a leading minus is the sign of all of them.

    Raises `InputError` for another text, for fractions of microseconds, and for more than a hundred years.

    >>> parse_duration("5 seconds"), parse_duration("250ms"), parse_duration("1 hour 30 minutes")
    (5000000, 250000, 5400000000)
    """
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body[1:] if sign < 0 else body
    total, at = Fraction(0), 0
    while at < len(body) or not body:
        part = _PART.match(body, at)
        if part is None:
            raise InputError(f"'{text}' isn't a duration", hint=_HINT)
        number, unit = Fraction(part["number"].rstrip(".")), part["unit"].lower()
        if unit in ("month", "months", "mon", "mons", "year", "years"):
            raise InputError(f"a {unit} has no fixed length", hint="count in days or weeks")
        if unit not in UNITS and not (unit == "" and number == 0):
            what = f"'{part['unit']}' isn't a unit of time" if unit else f"'{text}' has no unit"
            raise InputError(what, hint=_HINT)
        total += number * UNITS.get(unit, 0)
        at = part.end()
    if total.denominator != 1:
        raise InputError(f"'{text}' is finer than a microsecond", hint="round it to whole microseconds")
    if total > LONGEST:
        raise InputError(f"'{text}' is longer than a hundred years", hint="write a shorter duration")
    return sign * int(total)


def parse_rate(text: str) -> Rate:
    """A rate from its text: a count, a slash, and a unit or a duration.

    >>> parse_rate("10/s"), parse_rate("5 / minute"), parse_rate("3/10s")
    (Rate(count=10, per=1000000), Rate(count=5, per=60000000), Rate(count=3, per=10000000))
    """
    hint = "write a whole number, a slash and a unit, such as '10/s' or '5/minute'"
    match = _RATE.fullmatch(text)
    if match is None:
        raise InputError(f"'{text}' isn't a rate", hint=hint)
    per = match["per"].strip()
    try:
        span = UNITS[per.lower()] if per.lower() in UNITS else parse_duration(per)
    except InputError as error:
        raise InputError(f"'{text}' isn't a rate: {error.what}", hint=hint) from error
    if int(match["count"]) < 1 or span < 1:
        raise InputError(f"'{text}' isn't a positive rate", hint=hint)
    return Rate(int(match["count"]), span)


def parse_timestamp(text: str) -> int:
    """An ISO 8601 time in microseconds since 1970-01-01 UTC; UTC is the default zone.

    >>> parse_timestamp("1970-01-01T00:00:01.5"), parse_timestamp("1970-01-01 01:00:00+01:00")
    (1500000, 0)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"'{text}' isn't a time of ISO 8601", hint="write it like '2026-01-31T12:00:00Z'"
        ) from error

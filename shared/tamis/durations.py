"""Spans of time and times as text for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal


def seconds(microseconds: int) -> str:
    """A span in seconds, exactly.

    >>> seconds(90_000_000), seconds(9_999_998)
    ('90 s', '9.999998 s')
    """
    whole, rest = divmod(microseconds, 1_000_000)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".") + " s"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_text(microseconds: int, precision: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """A time since 1970 in ISO 8601; as a number of microseconds if it is beyond all dates.

    >>> iso_text(1_500_000), iso_text(-1, "seconds"), iso_text(10**18)
    ('1970-01-01T00:00:01.500Z', '1969-12-31T23:59:59Z', '1000000000000000000')
    """
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return str(microseconds)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def exact_text(microseconds: int) -> str:
    """A time since 1970 in ISO 8601, with as many digits of a second as it has, so that no two times have one
    text. A time beyond all dates is given as a number of microseconds.

    >>> exact_text(1_500_000), exact_text(60_000_000), exact_text(1)
    ('1970-01-01T00:00:01.5Z', '1970-01-01T00:01:00Z', '1970-01-01T00:00:00.000001Z')
    """
    try:
        text = (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None).isoformat()
    except OverflowError:
        return str(microseconds)
    return f"{text.rstrip('0') if '.' in text else text}Z"

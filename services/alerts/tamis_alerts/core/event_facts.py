"""Facts of an event of an episode: its identity, its times as text, and JSON of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tamis.printable import printable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_id(episode: Mapping[str, Any]) -> str:
    """The identity of an event; it is the same if an event was written twice."""
    # An episode has one opening and one close, and any number of events in between.
    end = f":{episode['end']}" if episode["event"] == "open" else ""
    return f"{episode['episode']}:{episode['event']}{end}"


def shown(value: Any) -> str:
    """A value in a text for people, in one line.

    >>> shown("k1"), shown(3), shown(None), shown(True)
    ('k1', '3', 'NULL', 'true')
    """
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else printable(str(value))


def iso_time(microseconds: int) -> str:
    """A time as people and other systems read it, in UTC; a number of microseconds if it is beyond all dates.

    >>> iso_time(1_700_000_000_500_000), iso_time(10**18)
    ('2023-11-14T22:13:20.500000+00:00', '1000000000000000000')
    """
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return str(microseconds)


def readable(value: Any, *, is_time: bool) -> Any:
    """A value of a key or a row for people: times as ISO 8601, others as they are.

    >>> readable(1_500_000, is_time=True), readable(None, is_time=True), readable(3, is_time=False)
    ('1970-01-01T00:00:01.500000+00:00', None, 3)
    """
    return iso_time(value) if is_time and type(value) is int else value

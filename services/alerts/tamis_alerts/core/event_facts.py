"""Facts of an event of an episode: its identity, and its times as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def event_id(episode: Mapping[str, Any]) -> str:
    """The identity of an event; it is the same if an event was written twice."""
    # An episode has one opening and one close, and any number of events in between.
    end = f":{episode['end']}" if episode["event"] == "open" else ""
    return f"{episode['episode']}:{episode['event']}{end}"


def shown(value: Any) -> str:
    """A value in a text for people.

    >>> shown("k1"), shown(3), shown(None), shown(True)
    ('k1', '3', 'NULL', 'true')
    """
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def iso_time(microseconds: int) -> str:
    """A time as people and other systems read it, in UTC.

    >>> iso_time(1_700_000_000_500_000)
    '2023-11-14T22:13:20.500000+00:00'
    """
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat()

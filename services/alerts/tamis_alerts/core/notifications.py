"""Notifications: events of episodes with facts that are not in them, and the sinks that get them.

Routes select the sinks of an episode by its alert, its severity and its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tamis.messaging.column_names import UNNAMED, ColumnNames
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


@dataclass(frozen=True)
class Notification:
    """An event of an episode for a sink.

    `link` is the address of the alert in the console; it is empty if the console's address isn't configured.
    """

    episode: dict[str, Any]
    names: ColumnNames = UNNAMED
    link: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """The values of the key by the names of their columns; empty if the names are unknown."""
        names, key = self.names.key, self.episode["key"]
        return dict(zip(names, key, strict=True)) if len(names) == len(key) else {}

    @property
    def readable_key(self) -> list[Any]:
        """The values of the key for people: times as ISO 8601."""
        names, key, times = self.names.key, self.episode["key"], self.names.key_times
        if len(names) != len(key):
            return list(key)
        return [readable(value, is_time=name in times) for name, value in zip(names, key, strict=True)]

    @property
    def readable_row(self) -> dict[str, Any]:
        """The row for people: times as ISO 8601."""
        times, row = self.names.row_times, self.episode["row"]
        return {name: readable(value, is_time=name in times) for name, value in row.items()}


def notification(episode: dict[str, Any], names: ColumnNames, console: str | None) -> Notification:
    """The notification of an event. `console` is the address of the console."""
    link = "" if console is None else f"{console.rstrip('/')}/#/alerts/{quote(episode['alert'], safe='')}"
    return Notification(episode, names, link)


@dataclass(frozen=True)
class Route:
    """Sinks of the episodes that meet all conditions. None, or no labels: every episode meets it.

    `go_on`: the routes after it are looked at, too.
    """

    sinks: frozenset[str]
    alerts: frozenset[str] | None = None
    severities: frozenset[str] | None = None
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    go_on: bool = False

    def matches(self, episode: Mapping[str, Any]) -> bool:
        """True if an event of an episode meets all conditions."""
        return (
            (self.alerts is None or episode["alert"] in self.alerts)
            and (self.severities is None or (episode["severity"] or "") in self.severities)
            and all(episode["labels"].get(name, "") in values for name, values in self.labels.items())
        )


def is_routed(routes: Sequence[Route], sink: str, episode: Mapping[str, Any]) -> bool:
    """True if a sink is notified of an episode: one of the routes that count for it names the sink.

    These are the routes that match, in their order, up to the first one that doesn't go on. Without routes,
    every sink is notified.
    """
    for route in routes:
        if route.matches(episode):
            if sink in route.sinks:
                return True
            if not route.go_on:
                return False
    return not routes

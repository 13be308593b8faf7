"""Notifications: events of episodes with facts that are not in the events themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis_alerts.core.event_facts import readable


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

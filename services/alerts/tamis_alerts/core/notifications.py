"""Notifications: events of episodes with facts that are not in the events themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class Notification:
    """An event of an episode for a sink.

    `columns` has the values of the key by the names of their columns; it is empty if the names are unknown.
    `link` is the address of the alert in the console; it is empty if the console's address isn't configured.
    """

    episode: dict[str, Any]
    columns: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""


def notification(episode: dict[str, Any], columns: Sequence[str], console: str | None) -> Notification:
    """The notification of an event. `columns` has the names of the values of its key, or is empty; `console`
    is the address of the console.
    """
    key = episode["key"]
    by_name = dict(zip(columns, key, strict=True)) if len(columns) == len(key) else {}
    link = "" if console is None else f"{console.rstrip('/')}/#/alerts/{quote(episode['alert'], safe='')}"
    return Notification(episode, by_name, link)

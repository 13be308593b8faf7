"""Notifications as sinks get them: which sinks get them, their content, and the error of a failed attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import orjson

from tamis.messaging.json_bytes import json_bytes
from tamis.messaging.silences import check_event
from tamis.printable import printable
from tamis.telemetry import get_logger
from tamis_alerts.core.notifications import Notification, Route, is_routed, iso_time, shown
from tamis_alerts.sink_settings import Alertmanager, Sink
from tamis_alerts.template_limits import RenderError
from tamis_alerts.templates import render


class SendError(Exception):
    """A sink has not accepted a notification. The message never has an address or a secret of the sink.

    `passing`: another attempt may succeed.
    """

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


class Transport(Protocol):
    """Makes single attempts to notify one sink. It is used in one event loop."""

    async def send(self, notification: Notification) -> None:
        """Return when the sink has accepted the event of an episode. Raises SendError or TimeoutError.

        The caller limits the time of an attempt by cancelling it.
        """

    async def close(self) -> None:
        """Close the connections."""


log = get_logger("alerts.sinks")

# Characters of a text without a template. Chats cut longer ones, and people read less.
MOST_TEXT = 3_000


def read_episode(value: bytes) -> dict[str, Any]:
    """The event of an episode in a record's value. Members that this version doesn't know are kept: a later
    version may have written them.

    Raises ValueError if it can't be read.
    """
    raw: dict[str, Any] = orjson.loads(value)
    check_event(raw)
    return raw


def accepts(sink: Sink, episode: dict[str, Any], routes: Sequence[Route] = ()) -> bool:
    """True if a sink is notified of an event: all of the opening and the close of an episode, Alertmanager
    also of the events in between.
    """
    told = isinstance(sink, Alertmanager) or episode["event"] != "open"
    return told and sink.wants(episode["alert"]) and is_routed(routes, sink.name, episode)


def title(notification: Notification) -> str:
    """One line that names the alert, the key and the event.

    >>> title(Notification({"alert": "hot", "key": ["k1", 3], "event": "opened", "severity": "page"}))
    '[page] hot opened: k1, 3'
    >>> title(Notification({"alert": "hot", "key": [None], "event": "opened", "severity": None}))
    'hot opened: NULL'
    """
    episode = notification.episode
    severity = f"[{episode['severity']}] " if episode["severity"] else ""
    key = ", ".join(map(shown, notification.readable_key))
    line = f"{severity}{episode['alert']} {episode['event']}" + (f": {key}" if key else "")
    return one_line(line)


def one_line(text: str, most: int = 200) -> str:
    """A text in one line of at most `most` characters, without control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())[:most]


def text(notification: Notification) -> str:
    """The title and the facts of an event, one on each line. The last line is the link, if there is one."""
    episode = notification.episode
    alarms = f"alarms: {episode['alarms']}"
    lines = [
        title(notification),
        f"from: {iso_time(episode['start'])}",
        f"to: {iso_time(episode['end'])}",
        alarms,
    ]
    facts = (*notification.readable_row.items(), *episode["labels"].items())
    lines += [f"{printable(name)}: {shown(value)}" for name, value in facts]
    whole = "\n".join(lines)
    short = whole if len(whole) <= MOST_TEXT else f"{whole[:MOST_TEXT]}…"
    return f"{short}\n{notification.link}" if notification.link else short


def body(template: str | None, notification: Notification) -> bytes:
    """The content for a program: JSON without a template. Raises SendError if the template can't be rendered.

    Then the notification becomes a dead letter, since a program could not read another text.
    """
    if template is None:
        return json_bytes(notification.episode)
    try:
        return render(template, notification).encode()
    except RenderError as error:
        raise SendError(f"the template `body` can't be rendered: {error}", passing=False) from None


def worded(
    sink: Sink,
    template: str | None,
    notification: Notification,
    default: str,
    *,
    html: bool = False,
    escape: Callable[[str], str] = printable,
) -> str:
    """The text for people: that of a template, or `default` without one or if it can't be rendered. `escape`
    changes the texts of the event in it.
    """
    if template is not None:
        try:
            rendered = render(template, notification, html=html, escape=escape)
            return rendered if rendered.strip() else default  # chats refuse an empty text
        except RenderError as error:
            log.warning(
                "a template can't be rendered; the text without a template is sent",
                sink=sink.name,
                alert=notification.episode["alert"],
                error=str(error),
            )
    return default

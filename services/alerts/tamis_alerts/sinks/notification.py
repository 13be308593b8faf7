"""HTTP requests that notify a sink of an event of an episode."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from tamis_alerts.core.episodes import Episode
from tamis_alerts.settings import Alertmanager, Sink, Webhook

# Alertmanager resolves an alert when it gets no message for `resolve_timeout` (5 minutes by default). An open
# episode sends one only when it has grown by its gap, so each message has an end far enough ahead.
_STILL_OPEN = timedelta(hours=24)


@dataclass(frozen=True)
class Request:
    """A POST. Its URL may be a secret of the sink, so it must not be logged."""

    url: str
    body: bytes
    headers: dict[str, str]


def read_episode(value: bytes) -> dict[str, Any]:
    """The event of an episode in a record's value. Raises ValueError or TypeError if it can't be read."""
    raw = orjson.loads(value)
    if not isinstance(raw, dict):
        raise TypeError("not a JSON object")
    Episode(**raw)
    return raw


def event_id(episode: dict[str, Any]) -> str:
    """The identity of an event; it is the same if an event was written twice."""
    # An episode has one opening and one close, and any number of events in between.
    end = f":{episode['end']}" if episode["event"] == "open" else ""
    return f"{episode['episode']}:{episode['event']}{end}"


def accepts(sink: Sink, episode: dict[str, Any]) -> bool:
    """True if a sink is notified of an event. Webhooks are notified of the opening and the close of an
    episode, Alertmanager also of the events in between.
    """
    return sink.wants(episode["alert"]) and (isinstance(sink, Alertmanager) or episode["event"] != "open")


def request(sink: Sink, episode: dict[str, Any]) -> Request:
    """The POST that notifies a sink of an event."""
    return _alertmanager(sink, episode) if isinstance(sink, Alertmanager) else _webhook(sink, episode)


def _webhook(sink: Webhook, episode: dict[str, Any]) -> Request:
    body = orjson.dumps(episode)
    headers = {"content-type": "application/json", "idempotency-key": event_id(episode)}
    if sink.secret is not None:
        digest = hmac.new(sink.secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
        headers["x-tamis-signature"] = f"sha256={digest}"
    return Request(str(sink.url), body, headers)


def _alertmanager(sink: Alertmanager, episode: dict[str, Any]) -> Request:
    """An alert of API v2, which is active until its episode closes."""
    now = datetime.now(UTC)
    ends = now if episode["event"] == "closed" else now + _STILL_OPEN
    labels = {
        **episode["labels"],
        "alertname": episode["alert"],
        "key": orjson.dumps(episode["key"]).decode(),
        **({"severity": episode["severity"]} if episode["severity"] else {}),
    }
    alert = {
        "labels": labels,
        "annotations": {"row": orjson.dumps(episode["row"]).decode(), "episode": episode["episode"]},
        "startsAt": datetime.fromtimestamp(episode["start"] / 1e6, UTC).isoformat(),
        "endsAt": ends.isoformat(),
    }
    url = f"{str(sink.url).rstrip('/')}/api/v2/alerts"
    return Request(url, orjson.dumps([alert]), {"content-type": "application/json"})

"""Attempts to notify a sink by an HTTP POST: the request of each kind of HTTP sink, and its answer."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson

from tamis.messaging.json_bytes import json_bytes
from tamis.printable import printable
from tamis_alerts.core.notifications import Notification, event_id, iso_time, shown
from tamis_alerts.settings import sink_context
from tamis_alerts.sink_settings import Alertmanager, HttpSink, PagerDuty, Slack, Webhook
from tamis_alerts.sinks.notification import SendError, one_line, text, title, worded
from tamis_alerts.sinks.notification import body as content

# Only the status of an answer counts. It is read up to this size, since a connection is only used again after
# the end of its answer.
_ANSWER_BYTES = 64 * 1024

_PASSING_STATUS = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.REQUEST_TIMEOUT)


_NOT_PACKED = {"accept-encoding": "identity"}


class HttpTransport:
    """POSTs to one address. Redirects aren't followed: they could lead to an address that nobody checked."""

    def __init__(self, sink: HttpSink) -> None:
        self._sink = sink
        token = sink.token.get_secret_value() if sink.token else None
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        verify = True if sink.ca is None else sink_context(sink)
        self._client = httpx.AsyncClient(
            timeout=sink.timeout, verify=verify, headers={**headers, **_NOT_PACKED}
        )

    async def send(self, notification: Notification) -> None:
        """POST an event. Raises SendError."""
        post = request(self._sink, notification)
        try:
            sent = self._client.stream("POST", post.url, content=post.body, headers=post.headers)
            async with sent as answer:
                answer.raise_for_status()
                await _read(answer)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            passing = status >= httpx.codes.INTERNAL_SERVER_ERROR or status in _PASSING_STATUS
            raise SendError(f"HTTP status {status}", passing=passing) from None
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            passing = isinstance(error, httpx.TransportError)
            raise SendError(f"{type(error).__name__}{_cause(error)}", passing=passing) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _read(answer: httpx.Response) -> None:
    size = 0
    async for part in answer.aiter_raw():
        size += len(part)
        if size > _ANSWER_BYTES:
            return


def _cause(error: BaseException) -> str:
    """The reason for an error in words of the system. The messages of most errors may have the address, which
    is a secret for many webhooks.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f": {cause.verify_message.partition(',')[0]}"
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
            return f": {os.strerror(cause.errno)}"
        cause = cause.__cause__ or cause.__context__
    return ""


# Alertmanager resolves an alert when it gets no message for `resolve_timeout` (5 minutes by default). An open
# episode sends one only when it has grown by its gap, so each message has an end far enough ahead.
_STILL_OPEN = timedelta(hours=24)

# PagerDuty refuses events of more than 512 KB. Then the event is sent without the row and the labels.
_PAGERDUTY_BYTES = 500_000
_PAGERDUTY_SUMMARY = 1024
# Severities of alerts that mean one of PagerDuty's, besides its own names.
_SEVERITIES = {"page": "critical", "warn": "warning", "ticket": "warning", "information": "info"}
_OWN_SEVERITIES = ("critical", "error", "warning", "info")


@dataclass(frozen=True)
class Request:
    """A POST. Its URL may be a secret of the sink, so it must not be logged."""

    url: str
    body: bytes
    headers: dict[str, str]


def request(sink: HttpSink, notification: Notification) -> Request:
    """The POST that notifies a sink of an event."""
    episode = notification.episode
    if isinstance(sink, Alertmanager):
        url = f"{str(sink.url).rstrip('/')}/api/v2/alerts"
        return Request(url, _alertmanager(notification), {"content-type": "application/json"})
    headers = {"content-type": "application/json", "idempotency-key": event_id(episode)}
    if isinstance(sink, Webhook):
        body = content(sink.body, notification)
        headers["content-type"] = sink.content_type
        if sink.secret is not None:
            digest = hmac.new(sink.secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
            headers["x-tamis-signature"] = f"sha256={digest}"
    else:
        body = _slack(sink, notification) if isinstance(sink, Slack) else _pagerduty(sink, notification)
    return Request(str(sink.url), body, headers)


def _alertmanager(notification: Notification) -> bytes:
    """An alert of API v2, which is active until its episode closes. Its labels identify it."""
    episode = notification.episode
    now = datetime.now(UTC)
    ends = now if episode["event"] == "closed" else now + _STILL_OPEN
    labels = {
        **episode["labels"],
        "alertname": episode["alert"],
        "key": orjson.dumps(episode["key"]).decode(),
        **({"severity": episode["severity"]} if episode["severity"] else {}),
    }
    alert: dict[str, Any] = {
        "labels": _with_columns(labels, notification.columns),
        "annotations": {
            "row": orjson.dumps(notification.readable_row).decode(),
            "episode": episode["episode"],
        },
        "startsAt": iso_time(episode["start"]),
        "endsAt": ends.isoformat(),
    }
    if notification.link:
        alert["generatorURL"] = notification.link
    return json_bytes([alert])


def _with_columns(labels: dict[str, str], columns: Mapping[str, Any]) -> dict[str, str]:
    """Labels, and one for each key column. A column whose name is taken gets the prefix `key_`.

    >>> _with_columns({"key": '["k", 1]'}, {"station": "k", "key": 1})
    {'key': '["k", 1]', 'station': 'k', 'key_key': '1'}
    """
    found = dict(labels)
    for column, value in columns.items():
        # Alertmanager before 0.27 refuses names with other characters.
        name = re.sub(r"[^A-Za-z0-9_]|^(?=[0-9])", "_", column)
        while name in found:
            name = f"key_{name}"
        found[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return found


def _slack(sink: Slack, notification: Notification) -> bytes:
    default = _without_markup(text(notification))
    return json_bytes({"text": worded(sink, sink.text, notification, default, escape=_slack_text)})


def _slack_text(value: str) -> str:
    return _without_markup(printable(value))


def _without_markup(value: str) -> str:
    # Slack reads these three signs as markup, also in texts that come from readings.
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pagerduty(sink: PagerDuty, notification: Notification) -> bytes:
    """An event of the Events API v2. PagerDuty keeps one open incident for a `dedup_key`."""
    episode = notification.episode
    event: dict[str, Any] = {
        "routing_key": sink.routing_key.get_secret_value(),
        "event_action": "resolve" if episode["event"] == "closed" else "trigger",
        "dedup_key": episode["episode"],
    }
    if notification.link:
        event |= {"client": "Tamis", "client_url": notification.link}
        event["links"] = [{"href": notification.link, "text": f"Alert {episode['alert']} in Tamis"}]
    key = notification.readable_key
    details = {"alert": episode["alert"], "key": key, "alarms": episode["alarms"]}
    payload = {
        "summary": one_line(
            worded(sink, sink.summary, notification, title(notification)), _PAGERDUTY_SUMMARY
        ),
        "source": ", ".join(map(shown, key))[:_PAGERDUTY_SUMMARY] or episode["alert"],
        "severity": _severity(sink, episode["severity"]),
        "timestamp": iso_time(episode["start"]),
        "class": episode["alert"],
        "custom_details": {**details, "row": notification.readable_row, "labels": episode["labels"]},
    }
    body = json_bytes({**event, "payload": payload})
    if len(body) <= _PAGERDUTY_BYTES:
        return body
    short = {"alert": episode["alert"], "row": "left out: it is too large for PagerDuty"}
    return json_bytes({**event, "payload": {**payload, "custom_details": short}})


def _severity(sink: PagerDuty, severity: str | None) -> str:
    found = sink.severities.get(severity or "")
    lower = (severity or "").lower()
    return found or (lower if lower in _OWN_SEVERITIES else _SEVERITIES.get(lower, "error"))

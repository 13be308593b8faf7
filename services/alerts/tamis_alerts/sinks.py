"""Notifications of episodes: the log, webhooks, Alertmanager's API v2; with retries, and never twice on
purpose.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
from tenacity import (
    AsyncRetrying,
    RetryError,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from tamis.telemetry import Metrics, get_logger
from tamis_alerts.config import Alertmanager, Webhook

Episode = dict[str, Any]

log = get_logger("alerts.sinks")

# Alertmanager resolves what it hears nothing of after `resolve_timeout` (5 minutes unless set); an open
# episode says that it lasts when it has grown by its gap, which may be rarer, so each message carries an
# end far enough ahead.
_STILL_OPEN = timedelta(hours=24)


class Sinks:
    """All sinks. A sink that stays away costs its notifications, which are counted and logged, not the
    others'.
    """

    def __init__(self, sinks: Sequence[Webhook | Alertmanager], metrics: Metrics) -> None:
        self._sinks = sinks
        self._metrics = metrics
        self._client = httpx.AsyncClient()

    async def notify(self, episode: Episode) -> None:
        """Tell every sink that wants it; returns once each has taken it or was given up."""
        if episode["event"] != "open":
            facts = {k: episode[k] for k in ("alert", "key", "episode", "start", "end", "alarms")}
            log.info(f"episode {episode['event']}", **facts)
            self._metrics.inc("tamis_notifications_total", sink="log", outcome="delivered")
        for sink in self._sinks:
            # A webhook hears of the opening and the close; Alertmanager also that it lasts.
            if sink.wants(episode["alert"]) and (
                isinstance(sink, Alertmanager) or episode["event"] != "open"
            ):
                await self._deliver(sink, episode)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def _deliver(self, sink: Webhook | Alertmanager, episode: Episode) -> None:
        url, body, headers = (
            alertmanager(sink, episode) if isinstance(sink, Alertmanager) else webhook(sink, episode)
        )
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(sink.attempts),
                wait=wait_random_exponential(multiplier=0.2, max=10),
                retry=retry_if_exception(_passing),
            ):
                with attempt:
                    answer = await self._client.post(url, content=body, headers=headers, timeout=sink.timeout)
                    answer.raise_for_status()
        except (RetryError, httpx.HTTPError) as error:
            self._metrics.inc("tamis_notifications_total", sink=sink.kind, outcome="given_up")
            cause = error.last_attempt.exception() if isinstance(error, RetryError) else error
            log.error(
                "notification given up",
                sink=sink.kind,
                host=sink.url.host,
                episode=episode["episode"],
                error=_words(cause),
            )
        else:
            self._metrics.inc("tamis_notifications_total", sink=sink.kind, outcome="delivered")


def webhook(sink: Webhook, episode: Episode) -> tuple[str, bytes, dict[str, str]]:
    """URL, body and headers of one POST."""
    body = orjson.dumps(episode)
    headers = {
        "content-type": "application/json",
        "idempotency-key": f"{episode['episode']}:{episode['event']}",
    }
    if sink.secret is not None:
        digest = hmac.new(sink.secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
        headers["x-tamis-signature"] = f"sha256={digest}"
    return str(sink.url), body, headers


def alertmanager(sink: Alertmanager, episode: Episode) -> tuple[str, bytes, dict[str, str]]:
    """One alert of API v2: open until its episode closes."""
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
    return url, orjson.dumps([alert]), {"content-type": "application/json"}


def _words(error: BaseException | None) -> str:
    """What went wrong, without the address: that of many a webhook is a secret."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP status {error.response.status_code}"
    return repr(error)


def _passing(error: BaseException) -> bool:
    """Whether trying again may help: not for what the other side calls our mistake."""
    if isinstance(error, httpx.HTTPStatusError):
        return (
            error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
            or error.response.status_code
            in (
                httpx.codes.TOO_MANY_REQUESTS,
                httpx.codes.REQUEST_TIMEOUT,
            )
        )
    return isinstance(error, httpx.TransportError)

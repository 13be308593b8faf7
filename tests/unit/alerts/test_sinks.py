"""Notifications to a server that fails: tried again or given up, counted and logged, never with a secret."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from tamis.telemetry import Metrics
from tamis.telemetry.server import HttpServer
from tamis_alerts.config import AlertsConfig
from tamis_alerts.sinks import Sinks

EPISODE = {
    "alert": "hot", "key": ["k"], "episode": "e1", "event": "opened", "start": 0, "end": 5_000_000,
    "alarms": 3, "row": {"temp": 41.5}, "severity": "page", "labels": {"team": "ops"},
}  # fmt: skip


class Receiver:
    """Takes notifications and answers them with the next of `answers`, 200 behind the last."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        paths = ("/token-of-the-hook", "/api/v2/alerts")
        self.server = HttpServer(
            Starlette(routes=[Route(path, self._take, methods=["POST"]) for path in paths]), "127.0.0.1", 0
        )

    async def _take(self, request: Request) -> Response:
        self.taken.append((request.url.path, dict(request.headers), await request.body()))
        return Response(status_code=self.answers.pop(0) if self.answers else 200)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.server.start()
    yield made
    made.server.stop()


def notify(sink: dict[str, Any], event: str = "opened") -> tuple[Metrics, list[Any]]:
    """One event of an episode to one sink: what was counted, and what was logged as an error."""
    metrics = Metrics("alerts")
    config = AlertsConfig.model_validate({"sinks": [{"attempts": 3, **sink}]})

    async def tell() -> None:
        sinks = Sinks(config.sinks, metrics)
        await sinks.notify({**EPISODE, "event": event})
        await sinks.close()

    with capture_logs() as logs:
        asyncio.run(tell())
    return metrics, [entry for entry in logs if entry["log_level"] == "error"]


def count(metrics: Metrics, sink: str, outcome: str) -> float | None:
    return metrics.registry.get_sample_value("tamis_notifications_total", {"sink": sink, "outcome": outcome})


def webhook(receiver: Receiver, **more: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": f"{receiver.server.url}/token-of-the-hook", **more}


def test_what_fails_for_a_moment_is_tried_again_and_signed_alike(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    receiver.answers = [503, 429]
    metrics, errors = notify(webhook(receiver, secret="${HOOK_SECRET}"))
    assert (count(metrics, "webhook", "delivered"), errors) == (1, [])
    assert len(receiver.taken) == 3
    for _, headers, body in receiver.taken:
        assert orjson.loads(body) == EPISODE
        assert headers["idempotency-key"] == "e1:opened"
        digest = hmac.new(b"hush", body, hashlib.sha256).hexdigest()
        assert headers["x-tamis-signature"] == f"sha256={digest}"


@pytest.mark.parametrize(("answers", "attempts"), [([400], 1), ([500] * 3, 3)])
def test_what_is_given_up_is_counted_and_logged_without_its_address(
    receiver: Receiver, answers: list[int], attempts: int
) -> None:
    receiver.answers = list(answers)
    metrics, errors = notify(webhook(receiver))
    assert len(receiver.taken) == attempts
    assert count(metrics, "webhook", "given_up") == 1
    assert count(metrics, "webhook", "delivered") is None
    (said,) = errors
    assert (said["error"], said["host"]) == (f"HTTP status {answers[0]}", "127.0.0.1")
    assert "token-of-the-hook" not in repr(said)


def test_a_sink_that_is_away_is_given_up(receiver: Receiver) -> None:
    receiver.server.stop()
    metrics, errors = notify(webhook(receiver))
    assert count(metrics, "webhook", "given_up") == 1
    assert "token-of-the-hook" not in repr(errors)


def test_a_webhook_hears_of_the_beginning_and_the_end_and_alertmanager_that_it_lasts(
    receiver: Receiver,
) -> None:
    alertmanager = {"kind": "alertmanager", "url": receiver.server.url}
    for event in ("opened", "open", "closed"):
        notify(webhook(receiver), event)
        notify(alertmanager, event)
    hooks = [orjson.loads(body)["event"] for path, _, body in receiver.taken if path == "/token-of-the-hook"]
    assert hooks == ["opened", "closed"]
    told = [orjson.loads(body)[0] for path, _, body in receiver.taken if path == "/api/v2/alerts"]
    assert [one["startsAt"] for one in told] == ["1970-01-01T00:00:00+00:00"] * 3
    assert told[0]["labels"] == {"alertname": "hot", "key": '["k"]', "severity": "page", "team": "ops"}
    assert told[0]["endsAt"] > told[2]["endsAt"], "an open one lasts, a closed one is over"

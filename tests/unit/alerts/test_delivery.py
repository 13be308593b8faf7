"""Delivery to a server that fails: repeated or given up, and logged without secrets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from tamis.telemetry.server import HttpServer
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sinks.delivery import DeliveryError, HttpDelivery
from tamis_alerts.sinks.notification import accepts

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


def deliver(
    sink: dict[str, Any], event: str = "opened", written: float | None = None
) -> tuple[str, list[Any]]:
    """One event of an episode to one sink: why it was given up, and what was logged."""
    (config,) = AlertsConfig.model_validate({"sinks": [{"attempts": 3, **sink}]}).sinks
    fault = ""

    async def tell() -> None:
        nonlocal fault
        delivery = HttpDelivery(config)
        try:
            await delivery.deliver({**EPISODE, "event": event}, time.time() if written is None else written)
        except DeliveryError as error:
            fault = str(error)
        await delivery.close()

    with capture_logs() as logs:
        asyncio.run(tell())
    return fault, logs


def webhook(receiver: Receiver, **more: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": f"{receiver.server.url}/token-of-the-hook", **more}


def test_what_fails_for_a_moment_is_tried_again_and_signed_alike(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    receiver.answers = [503, 429]
    fault, logs = deliver(webhook(receiver, secret="${HOOK_SECRET}"))
    assert fault == ""
    assert [entry["error"] for entry in logs if entry["log_level"] == "warning"] == ["HTTP status 503"]
    assert logs[-1]["event"] == "the sink accepts notifications again"
    assert len(receiver.taken) == 3
    for _, headers, body in receiver.taken:
        assert orjson.loads(body) == EPISODE
        assert headers["idempotency-key"] == "e1:opened"
        digest = hmac.new(b"hush", body, hashlib.sha256).hexdigest()
        assert headers["x-tamis-signature"] == f"sha256={digest}"


@pytest.mark.parametrize(("answers", "attempts"), [([400], 1), ([500] * 3, 3)])
def test_what_is_given_up_is_told_without_the_address(
    receiver: Receiver, answers: list[int], attempts: int
) -> None:
    receiver.answers = list(answers)
    fault, logs = deliver(webhook(receiver, name="pager"))
    assert len(receiver.taken) == attempts
    assert fault == f"sink 'pager': HTTP status {answers[0]}; attempts made: {attempts}"
    assert "token-of-the-hook" not in repr(logs)


def test_a_sink_that_is_away_is_given_up(receiver: Receiver) -> None:
    receiver.server.stop()
    fault, logs = deliver(webhook(receiver))
    assert "ConnectError" in fault and "attempts made: 3" in fault
    assert "token-of-the-hook" not in repr(logs) + fault


def test_an_answer_that_never_ends_is_no_answer() -> None:
    """Each byte comes in time; the whole of them doesn't."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ending = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while not ending.wait(0.05):
                    connection.sendall(b".")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        fault, _ = deliver({"kind": "webhook", "url": url, "timeout": 0.5, "attempts": 1})
        ending.set()
        thread.join()
    assert fault == "sink 'webhook': no answer within 0.5 s; attempts made: 1"


def test_what_is_too_old_is_tried_once(receiver: Receiver) -> None:
    receiver.answers = [503] * 3
    fault, _ = deliver(webhook(receiver, give_up_after=60), written=time.time() - 61)
    assert len(receiver.taken) == 1
    assert "attempts made: 1" in fault


def test_a_webhook_hears_of_the_beginning_and_the_end_and_alertmanager_that_it_lasts(
    receiver: Receiver,
) -> None:
    alertmanager = {"kind": "alertmanager", "url": receiver.server.url}
    (hook,) = AlertsConfig.model_validate({"sinks": [webhook(receiver)]}).sinks
    (manager,) = AlertsConfig.model_validate({"sinks": [alertmanager]}).sinks
    events = [{**EPISODE, "event": event} for event in ("opened", "open", "closed")]
    assert [accepts(hook, event) for event in events] == [True, False, True]
    assert [accepts(manager, event) for event in events] == [True, True, True]
    for event in ("opened", "open", "closed"):
        deliver(alertmanager, event)
    told = [orjson.loads(body)[0] for _, _, body in receiver.taken]
    assert [one["startsAt"] for one in told] == ["1970-01-01T00:00:00+00:00"] * 3
    assert told[0]["labels"] == {"alertname": "hot", "key": '["k"]', "severity": "page", "team": "ops"}
    assert told[0]["endsAt"] > told[2]["endsAt"], "an open one lasts, a closed one is over"

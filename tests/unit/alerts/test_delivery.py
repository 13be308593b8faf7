"""Delivery to a server that fails: repeated or given up, and logged without secrets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import threading
import time
import tracemalloc
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

from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis.settings import KafkaSettings
from tamis.telemetry.server import HttpServer
from tamis_alerts.core.notifications import Notification
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sink_settings import Alertmanager, Webhook
from tamis_alerts.sinks.delivery import DeliveryError, LogDelivery, SharedSettings, SinkDelivery
from tamis_alerts.sinks.notification import accepts, read_episode
from tamis_alerts.sinks.transports.http import request

EPISODE = {
    "alert": "hot", "key": ["k"], "episode": "e1", "event": "opened", "start": 0, "end": 5_000_000,
    "alarms": 3, "row": {"temp": 41.5}, "severity": "page", "labels": {"team": "ops"},
}  # fmt: skip


class Receiver:
    """Takes notifications and answers them with the next of `answers`, 200 behind the last."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        paths = ("/token-of-the-hook", "/api/v2/alerts", "/v2/enqueue")
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
    sink: dict[str, Any],
    event: str = "opened",
    written: float | None = None,
    names: ColumnNames = UNNAMED,
    console: str | None = None,
    **facts: Any,
) -> tuple[str, list[Any]]:
    """One event of an episode to one sink: why it was given up, and what was logged."""
    (config,) = AlertsConfig.model_validate({"sinks": [{"attempts": 3, **sink}]}).sinks
    fault = ""

    async def tell() -> None:
        nonlocal fault
        delivery = SinkDelivery(config, KafkaSettings(), SharedSettings(console=console))
        try:
            episode = {**EPISODE, "event": event, **facts}
            await delivery.deliver(episode, time.time() if written is None else written, names)
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
    assert fault == "sink 'webhook': ConnectError: Connection refused; attempts made: 3"
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


def test_a_large_or_packed_answer_is_not_read_to_its_end() -> None:
    """What a receiver answers has no limit, and a packed megabyte may be gigabytes."""
    sent = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pour() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                request = connection.recv(65_536)
                assert b"accept-encoding: identity" in request.lower()
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
                for _ in range(2_000):
                    connection.sendall(b"." * 65_536)
                sent.set()

        thread = threading.Thread(target=pour)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert deliver({"kind": "webhook", "url": url})[0] == ""
        thread.join()
    assert not sent.is_set()


def test_an_error_that_nobody_expects_gives_up_one_notification(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any, __: Any) -> Any:
        raise KeyError("a value")

    monkeypatch.setattr("tamis_alerts.sinks.transports.http.request", fails)
    assert deliver(webhook(receiver))[0] == "sink 'webhook': unexpected KeyError; attempts made: 1"


def test_a_text_that_is_blank_is_replaced(receiver: Receiver) -> None:
    deliver(webhook(receiver, kind="slack", text="{% if severity == 'info' %}x{% endif %} "))
    assert orjson.loads(receiver.taken[0][2])["text"].startswith("[page] hot opened")


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


CONSOLE = "https://tamis.example.com/"
PAGE = "https://tamis.example.com/#/alerts/hot%20%26%20dry"


def test_alertmanager_gets_a_label_for_each_key_column_and_a_link(receiver: Receiver) -> None:
    sink, key = {"kind": "alertmanager", "url": receiver.server.url}, ["k", 3, None, "x"]
    names = ColumnNames(("station", "key", "team", "9 m"))
    deliver(sink, names=names, console=CONSOLE, alert="hot & dry", key=key)
    ((_, _, body),) = receiver.taken
    (one,) = orjson.loads(body)
    assert one["labels"] == {
        "alertname": "hot & dry", "key": '["k",3,null,"x"]', "severity": "page", "team": "ops",
        "station": "k", "key_key": "3", "key_team": "null", "_9_m": "x",
    }  # fmt: skip
    assert one["generatorURL"] == PAGE


@pytest.mark.parametrize("columns", [(), ("station", "level")])
def test_without_the_names_of_its_key_an_alert_has_no_labels_of_columns(
    receiver: Receiver, columns: tuple[str, ...]
) -> None:
    """An earlier version has written the event."""
    names = ColumnNames(columns)
    deliver({"kind": "alertmanager", "url": receiver.server.url}, "closed", names=names)
    (one,) = orjson.loads(receiver.taken[0][2])
    assert one["labels"].keys() == {"alertname", "key", "severity", "team"}
    assert "generatorURL" not in one


def test_people_get_a_link_to_the_page_of_the_alert(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    for sink in (webhook(receiver, kind="slack"), pagerduty(receiver)):
        deliver(sink, console=CONSOLE, alert="hot & dry", row={"log": "x" * 10_000})
    chat, incident = (orjson.loads(body) for _, _, body in receiver.taken)
    assert chat["text"].splitlines()[-1] == PAGE
    assert incident["client_url"] == PAGE
    assert incident["links"] == [{"href": PAGE, "text": "Alert hot & dry in Tamis"}]


def test_an_event_of_a_later_version_is_read_and_one_that_lacks_a_member_is_not() -> None:
    later = {**EPISODE, "since": 7}
    assert read_episode(orjson.dumps(later)) == later
    lacking = {name: value for name, value in EPISODE.items() if name != "labels"}
    with pytest.raises(ValueError, match="labels"):
        read_episode(orjson.dumps(lacking))
    for wrong in (b"[]", b"x", b"[" * 10_000, orjson.dumps({**EPISODE, "start": "now"})):
        with pytest.raises(ValueError, match=r"\w"):
            read_episode(wrong)


def test_a_chat_gets_the_facts_as_text_without_markup(receiver: Receiver) -> None:
    fault, _ = deliver(webhook(receiver, kind="slack"), row={"temp": 41.5, "name": "<!channel> & co"})
    assert fault == ""
    ((_, headers, body),) = receiver.taken
    assert headers["idempotency-key"] == "e1:opened"
    assert orjson.loads(body) == {
        "text": "[page] hot opened: k\nfrom: 1970-01-01T00:00:00+00:00\nto: 1970-01-01T00:00:05+00:00\n"
        "alarms: 3\ntemp: 41.5\nname: &lt;!channel&gt; &amp; co\nteam: ops"
    }


FORGED = "k\nalarms: 0\r\n\u2028<!channel>\x85\x1b]0;x\x07\u202e& *x*"


def test_a_value_can_t_forge_a_line_or_markup(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    facts: dict[str, Any] = {"key": [FORGED], "row": {FORGED: FORGED}, "labels": {"team": FORGED}}
    for chat in (
        webhook(receiver, kind="slack"),
        webhook(receiver, kind="slack", text="x {{ key[0] }} {{ labels.team }}"),
    ):
        assert deliver(chat, **facts)[0] == ""
    plain, templated = (orjson.loads(body)["text"] for _, _, body in receiver.taken)
    names = [line.partition(":")[0] for line in plain.splitlines()[1:4]]
    assert names == ["from", "to", "alarms"]
    assert len(plain.splitlines()) == 6 and len(templated.splitlines()) == 1
    for text in (plain, templated):
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert "<" not in text and ">" not in text and "&lt;!channel&gt;" in text
    deliver(pagerduty(receiver), **facts)
    payload = orjson.loads(receiver.taken[-1][2])["payload"]
    assert payload["summary"].isprintable() and payload["source"].isprintable()
    assert payload["custom_details"]["row"] == {FORGED: FORGED}  # programs get what the reading had


BUCKET, SEEN = 1_700_000_000_000_000, 1_700_000_007_500_000
TIMED: dict[str, Any] = {"key": ["k", BUCKET], "row": {"seen": SEEN, "n": BUCKET, "until": None}}
NAMES = ColumnNames(("station", "bucket"), ("bucket",), ("seen", "until"))
ISO_BUCKET, ISO_SEEN = "2023-11-14T22:13:20+00:00", "2023-11-14T22:13:27.500000+00:00"


def test_people_read_times_of_a_key_and_a_row_as_iso_8601(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only columns that are times: `n` is a number that looks like one."""
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    for sink in (webhook(receiver, kind="slack"), pagerduty(receiver)):
        deliver(sink, names=NAMES, **TIMED)
    deliver({"kind": "alertmanager", "url": receiver.server.url}, names=NAMES, **TIMED)
    chat, incident, alert = (orjson.loads(body) for _, _, body in receiver.taken)
    assert chat["text"].splitlines()[0] == f"[page] hot opened: k, {ISO_BUCKET}"
    assert chat["text"].splitlines()[4:7] == [f"seen: {ISO_SEEN}", f"n: {BUCKET}", "until: NULL"]
    row = {"seen": ISO_SEEN, "n": BUCKET, "until": None}
    assert incident["payload"]["summary"] == f"[page] hot opened: k, {ISO_BUCKET}"
    assert incident["payload"]["source"] == f"k, {ISO_BUCKET}"
    assert incident["payload"]["custom_details"]["row"] == row
    assert orjson.loads(alert[0]["annotations"]["row"]) == row
    assert alert[0]["labels"]["bucket"] == str(BUCKET), "labels identify the alert"


def test_programs_get_times_as_numbers(receiver: Receiver) -> None:
    deliver(webhook(receiver), names=NAMES, **TIMED)
    deliver(webhook(receiver, body="{{ row.seen }} {{ key|last }}"), names=NAMES, **TIMED)
    record, text = (body for _, _, body in receiver.taken)
    assert orjson.loads(record) == {**EPISODE, **TIMED}
    assert text == f"{SEEN} {BUCKET}".encode()


def test_the_log_has_the_times_of_an_episode_as_iso_8601() -> None:
    with capture_logs() as logs:
        asyncio.run(LogDelivery().deliver({**EPISODE, **TIMED}, time.time(), NAMES))
    assert logs == [
        {
            "event": "episode opened", "log_level": "info", "alert": "hot", "key": ["k", ISO_BUCKET],
            "episode": "e1", "start": "1970-01-01T00:00:00+00:00", "end": "1970-01-01T00:00:05+00:00",
            "alarms": 3,
        }
    ]  # fmt: skip


def pagerduty(receiver: Receiver, **more: Any) -> dict[str, Any]:
    url = f"{receiver.server.url}/v2/enqueue"
    return {"kind": "pagerduty", "url": url, "routing_key": "${ROUTING_KEY}", **more}


def test_an_episode_is_one_incident(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    receiver.answers = [500, 202, 202]
    logs = [deliver(pagerduty(receiver), event)[1] for event in ("opened", "closed")]
    assert "hush-key" not in repr(logs)
    told = [orjson.loads(body) for _, _, body in receiver.taken]
    assert [one["event_action"] for one in told] == ["trigger", "trigger", "resolve"]
    assert {one["dedup_key"] for one in told} == {"e1"}
    assert {one["routing_key"] for one in told} == {"hush-key"}
    assert told[0]["payload"] == {
        "summary": "[page] hot opened: k",
        "source": "k",
        "severity": "critical",
        "timestamp": "1970-01-01T00:00:00+00:00",
        "class": "hot",
        "custom_details": {
            "alert": "hot", "key": ["k"], "alarms": 3, "row": {"temp": 41.5}, "labels": {"team": "ops"},
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "found"), [("page", "info"), ("WARNING", "warning"), ("odd", "error"), (None, "error")]
)
def test_severities_become_those_of_pagerduty(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, severity: str | None, found: str
) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    deliver(pagerduty(receiver, severities={"page": "info"}), severity=severity)
    assert orjson.loads(receiver.taken[0][2])["payload"]["severity"] == found


def test_a_row_that_pagerduty_would_refuse_is_left_out(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hush-key")
    deliver(pagerduty(receiver), row={"log": "x" * 600_000})
    body = receiver.taken[0][2]
    assert len(body) < 2_000
    assert "too large" in orjson.loads(body)["payload"]["custom_details"]["row"]


def test_templates_write_what_is_sent_and_a_text_replaces_one_that_fails(receiver: Receiver) -> None:
    chat = webhook(
        receiver, kind="slack", text="<!here> {{ row.name }}{% if event == 'closed' %}{{ row.no }}{% endif %}"
    )
    assert deliver(chat, row={"name": "<b>"})[0] == ""
    fault, logs = deliver(chat, "closed", row={"name": "<b>"})
    assert fault == "" and [entry["error"] for entry in logs] == [
        "UndefinedError: 'dict object' has no attribute 'no'"
    ]
    texts = [orjson.loads(body)["text"] for _, _, body in receiver.taken]
    assert texts[0] == "<!here> &lt;b&gt;" and texts[1].startswith("[page] hot closed: k\n")


def test_a_body_by_template_is_sent_as_written_and_one_that_fails_becomes_a_dead_letter(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    body = '{"id": {{ id|tojson }}, "temp": {{ row.temp }}}'
    hook = webhook(receiver, body=body, content_type="application/vnd.example+json", secret="${HOOK_SECRET}")
    assert deliver(hook)[0] == ""
    ((_, headers, sent),) = receiver.taken
    assert sent == b'{"id": "e1:opened", "temp": 41.5}'
    assert headers["content-type"] == "application/vnd.example+json"
    assert headers["x-tamis-signature"] == f"sha256={hmac.new(b'hush', sent, hashlib.sha256).hexdigest()}"
    fault, _ = deliver(hook, row={})
    assert fault == (
        "sink 'webhook': the template `body` can't be rendered: UndefinedError: 'dict object' has no "
        "attribute 'temp'; attempts made: 1"
    )


@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
def test_the_body_of_a_request_takes_no_more_memory_than_its_length(kind: str) -> None:
    sink = {"name": "s", "kind": kind, "url": "http://127.0.0.1/"}
    (config,) = AlertsConfig.model_validate({"sinks": [sink]}).sinks
    assert isinstance(config, Webhook | Alertmanager)
    notification = Notification({**EPISODE, "row": {"note": "x" * 20_000}})
    tracemalloc.start()
    try:
        body = request(config, notification).body
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(body) > 20_000
    assert taken < 1.5 * len(body)

"""E-mails to a mail server on loopback: with TLS and a login, refused, and repeated."""

from __future__ import annotations

import asyncio
import gc
import random
import ssl
import time
import warnings
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage, Message
from email.policy import compat32, default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword
from structlog.testing import capture_logs
from tests.integration.edge.mqtt import Certificate

from tamis.local.service_process import free_ports
from tamis.settings import KafkaSettings
from tamis_alerts.core.notifications import Notification
from tamis_alerts.settings import AlertsConfig
from tamis_alerts.sink_settings import Email
from tamis_alerts.sinks.delivery import DeliveryError, SinkDelivery
from tamis_alerts.sinks.transports.email import message

EPISODE = {
    "alert": "hot", "key": ["k"], "episode": "e1", "event": "opened", "start": 0, "end": 5_000_000,
    "alarms": 3, "row": {"temp": 41.5}, "severity": "page", "labels": {"team": "ops"},
}  # fmt: skip


class MailServer:
    """A mail server with STARTTLS and a login. It answers with the next of `answers`, then accepts."""

    def __init__(self, certificate: Certificate) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        port = free_ports(1)[0]
        self.answers: list[str] = []
        self.refused: set[str] = set()
        self.taken: list[tuple[list[str], Message]] = []
        self.busy_after_login = 0.0  # seconds in which it hears nothing
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=port,
            tls_context=context,
            require_starttls=True,
            authenticator=self._login,
            auth_required=True,
        )
        self.port, self.start, self.stop = port, self._controller.start, self._controller.stop

    def _login(self, *arguments: Any) -> AuthResult:
        data = arguments[-1]
        assert isinstance(data, LoginPassword)
        if self.busy_after_login:
            self._controller.loop.call_soon(time.sleep, self.busy_after_login)
        right = data.login == b"tamis" and data.password == b"hush"
        return AuthResult(success=right, handled=False)

    async def handle_RCPT(self, _: Any, __: Any, envelope: Envelope, address: str, options: list[str]) -> str:
        if address in self.refused:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _: Any, __: Any, envelope: Envelope) -> str:
        answer = self.answers.pop(0) if self.answers else "250 OK"
        content = envelope.content
        assert isinstance(content, bytes)
        if answer.startswith("250"):
            self.taken.append((envelope.rcpt_tos, message_from_bytes(content, policy=default)))
        return answer


@pytest.fixture
def mail(certificate: Certificate) -> Iterator[MailServer]:
    made = MailServer(certificate)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.make(tmp_path_factory.mktemp("mail"))


def deliver(port: int, ca: Path, event: str = "opened", **more: Any) -> tuple[str, str]:
    """One event by e-mail: why it was given up, and what was logged."""
    sink = {
        "kind": "email", "host": "127.0.0.1", "port": port, "from": "tamis@example.com", "attempts": 3,
        "to": ["a@example.com", "b@example.com"], "username": "tamis", "password": "${MAIL_PASSWORD}",
        "ca": str(ca), **more,
    }  # fmt: skip
    (config,) = AlertsConfig.model_validate({"sinks": [sink]}).sinks
    fault = ""

    async def tell() -> None:
        nonlocal fault
        delivery = SinkDelivery(config, KafkaSettings())
        try:
            await delivery.deliver({**EPISODE, "event": event}, time.time())
        except DeliveryError as error:
            fault = str(error)
        await delivery.close()

    with capture_logs() as logs:
        asyncio.run(tell())
    return fault, repr(logs)


def test_an_email_has_the_facts_and_one_identity_in_every_attempt(
    mail: MailServer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    mail.answers = ["451 4.3.0 later"]
    fault, logs = deliver(mail.port, certificate.certificate)
    assert fault == "" and "SMTPDataError: status 451" in logs and "hush" not in logs
    assert deliver(mail.port, certificate.certificate, "closed")[0] == ""
    (people, opened), (_, closed) = mail.taken
    assert people == ["a@example.com", "b@example.com"]
    assert opened["Subject"] == "[page] hot opened: k"
    assert (opened["Message-ID"], closed["Message-ID"]) == (
        "<e1.opened@example.com>",
        "<e1.closed@example.com>",
    )
    assert opened["References"] == closed["References"] == "<e1@example.com>"
    assert isinstance(opened, EmailMessage)
    assert opened.get_content().splitlines()[-2:] == ["temp: 41.5", "team: ops"]


PARTS = [
    "=?",
    "?=",
    "utf-8?q?",
    "utf-8?b?",
    "=0A",
    "=0D=0A",
    "Bcc:_a@b.c",
    "YQ==",
    "\\",
    "é",
    " ",
    "\r\n",
    "x" * 70,
]


def test_no_value_of_a_reading_adds_a_header_or_ends_the_headers() -> None:
    """The e-mail as bytes, read by a parser of its own."""
    sink = {"kind": "email", "host": "h", "from": "tamis@example.com", "to": ["a@example.com"]}
    (config,) = AlertsConfig.model_validate({"sinks": [sink]}).sinks
    assert isinstance(config, Email)
    known = set(message(config, Notification(EPISODE)).keys())
    usual = message(config, Notification({**EPISODE, "row": {"name": "x"}}))
    lines = len(usual.get_content().splitlines())
    seeded = random.Random(4)
    values = ["".join(seeded.choices(PARTS, k=seeded.randint(1, 9))) for _ in range(300)]
    for value in ["=?utf-8?q?x=0ABcc:_evil@example.com?=", "=?utf-8?q?x=0D=0A=0D=0Abody?=", *values]:
        made = message(config, Notification({**EPISODE, "key": [value], "row": {"name": value}}))
        assert len(made.get_content().splitlines()) == lines, value
        read = message_from_bytes(made.as_bytes(), policy=compat32)
        assert set(read.keys()) == known, value
        assert len(read.keys()) == len(known)
        assert "hot opened" in str(make_header(decode_header(read["Subject"])))


@pytest.mark.parametrize(
    "case",
    [
        ("554 5.7.1 no", "hush", "SMTPDataError: status 554; attempts made: 1"),
        ("451 4.3.0 later", "hush", "SMTPDataError: status 451; attempts made: 3"),
        ("250 OK", "hush-wrong", "SMTPAuthenticationError: status 535; attempts made: 3"),
    ],
)
def test_what_a_mail_server_refuses_is_given_up_without_secrets(
    mail: MailServer,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, str, str],
) -> None:
    answer, password, words = case
    monkeypatch.setenv("MAIL_PASSWORD", password)
    mail.answers = [answer] * 3
    fault, logs = deliver(mail.port, certificate.certificate)
    assert fault == f"sink 'email': {words}"
    assert "hush" not in logs and mail.taken == []


def test_a_refused_login_leaves_no_connection_open(
    mail: MailServer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the mail server doesn't answer the end of the encryption."""
    monkeypatch.setenv("MAIL_PASSWORD", "hush-wrong")
    mail.busy_after_login = 1.0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        fault, _ = deliver(mail.port, certificate.certificate, attempts=1)
        gc.collect()
    assert "SMTPAuthenticationError" in fault
    assert [str(one.message) for one in found] == []


def test_recipients_that_accept_get_an_email_once(
    mail: MailServer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    mail.refused = {"b@example.com"}
    fault, _ = deliver(mail.port, certificate.certificate)
    assert fault == "sink 'email': 1 of 2 recipients are refused: [550]; attempts made: 1"
    assert [people for people, _ in mail.taken] == [["a@example.com"]]


def test_a_certificate_of_another_authority_is_refused(
    mail: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    fault, _ = deliver(mail.port, Certificate.make(tmp_path).certificate, attempts=1)
    assert fault == "sink 'email': SSLCertVerificationError; attempts made: 1"
    assert mail.taken == []


def test_templates_write_subject_text_and_html(
    mail: MailServer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "hush")
    written = {
        "subject": "{{ alert }}\nBcc: x@example.com",
        "text": "{{ row.temp }}",
        "html": "<b>{{ alert }}</b>",
    }
    assert deliver(mail.port, certificate.certificate, **written)[0] == ""
    ((people, sent),) = mail.taken
    assert people == ["a@example.com", "b@example.com"] and isinstance(sent, EmailMessage)
    assert sent["Subject"] == "hot Bcc: x@example.com" and sent["Bcc"] is None
    parts = [part.get_content().strip() for part in sent.iter_parts() if isinstance(part, EmailMessage)]
    assert parts == ["41.5", "<b>hot</b>"]

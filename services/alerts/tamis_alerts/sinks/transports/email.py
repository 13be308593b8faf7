"""Attempts to send a notification as an e-mail by SMTP."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

import aiosmtplib

from tamis_alerts.core.notifications import Notification, event_id
from tamis_alerts.settings import sink_context
from tamis_alerts.sink_settings import Email
from tamis_alerts.sinks.notification import SendError, one_line, text, title, worded

# From this code on an answer of a mail server is final (RFC 5321, section 4.2.1).
_FINAL = 500


class _Client(aiosmtplib.SMTP):
    """A client that closes its connection at once, also after a failed login.

    The library's own waits for the server to end the encryption as well, for which nobody waits here.
    """

    def close(self) -> None:
        """Break off the connection."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()
        super().close()


class EmailTransport:
    """Sends one e-mail in one connection. Its `Message-ID` is the event's identity."""

    def __init__(self, sink: Email) -> None:
        self._sink = sink
        self._context = None if sink.security == "none" else sink_context(sink)

    async def send(self, notification: Notification) -> None:
        """Send an event to all recipients. Raises SendError."""
        sink = self._sink
        client = _Client(
            hostname=sink.host,
            port=sink.port,
            timeout=sink.timeout,
            use_tls=sink.security == "tls",
            start_tls=sink.security == "starttls",
            tls_context=self._context,
            username=sink.username,
            password=sink.password.get_secret_value() if sink.password else None,
        )
        try:
            await client.connect()
            refused, _ = await client.send_message(message(sink, notification))
        except aiosmtplib.SMTPTimeoutError:
            raise TimeoutError from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [one.code for one in error.recipients]
            raise SendError(f"all recipients are refused: {codes}", passing=min(codes) < _FINAL) from None
        except aiosmtplib.SMTPResponseException as error:
            # The server's text may repeat addresses.
            kind = type(error).__name__
            # A wrong password may be corrected while the notification waits, as a missing right may.
            passing = error.code < _FINAL or isinstance(error, aiosmtplib.SMTPAuthenticationError)
            raise SendError(f"{kind}: status {error.code}", passing=passing) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise SendError(type(error).__name__) from None
        finally:
            # Without QUIT: its failure must not repeat an e-mail that the server has accepted.
            client.close()
        if refused:
            # The others have their e-mail: another attempt would send it to them again.
            codes = sorted(answer.code for answer in refused.values())
            raise SendError(
                f"{len(refused)} of {len(sink.to)} recipients are refused: {codes}", passing=False
            )

    async def close(self) -> None:
        """Nothing has to be closed: each e-mail has a connection of its own."""


def message(sink: Email, notification: Notification) -> EmailMessage:
    """The e-mail of an event. All e-mails of one episode refer to the same identity, as those of a thread."""
    episode = notification.episode
    domain = sink.sender.rpartition("@")[2]
    made = EmailMessage()
    made["From"], made["To"] = sink.sender, ", ".join(sink.to)
    made["Subject"] = _plain(one_line(worded(sink, sink.subject, notification, title(notification))))
    made["Date"] = format_datetime(datetime.now(UTC))
    made["Message-ID"] = f"<{event_id(episode).replace(':', '.')}@{domain}>"
    made["References"] = f"<{episode['episode']}@{domain}>"
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834: programs must not answer
    made["Idempotency-Key"] = event_id(episode)
    made.set_content(worded(sink, sink.text, notification, text(notification)))
    if sink.html is not None and (html := worded(sink, sink.html, notification, "", html=True)):
        made.add_alternative(html, subtype="html")
    return made


def _plain(subject: str) -> str:
    """A subject without encoded words (RFC 2047). EmailMessage would decode them, also to ends of lines, and
    so a value of a reading could add headers.

    >>> _plain("hot opened: =?utf-8?q?x=0ABcc:_a@example.com?=")
    'hot opened: = ?utf-8?q?x=0ABcc:_a@example.com? ='
    """
    return subject.replace("=?", "= ?").replace("?=", "? =")

"""Attempts to notify a sink by an HTTP POST."""

from __future__ import annotations

import os
import ssl

import httpx

from tamis_alerts.core.notifications import Notification
from tamis_alerts.settings import sink_context
from tamis_alerts.sink_settings import HttpSink
from tamis_alerts.sinks.transports.http_requests import request
from tamis_alerts.sinks.transports.send_error import SendError

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

"""Delivery of a notification to a sink: to the log, or by an HTTP POST with retries."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_random_exponential,
)

from tamis.errors import TamisError
from tamis.telemetry import get_logger
from tamis_alerts.settings import LOG, Sink, sink_context
from tamis_alerts.sinks.notification import accepts, request

log = get_logger("alerts.sinks")

# Seconds between attempts: random, up to a limit that doubles from the first to the second number.
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 30.0
_PASSING_STATUS = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.REQUEST_TIMEOUT)


class DeliveryError(TamisError):
    """A sink has not accepted a notification. The message has the sink's name and never its address, which
    may be a secret.
    """

    retriable = True


class Delivery(Protocol):
    """Delivers the events of episodes to one sink."""

    name: str
    parallel: int

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True if the sink is notified of an event."""

    async def deliver(self, episode: dict[str, Any], written: float) -> None:
        """Return when the sink has accepted the event, which was `written` in seconds since 1970.

        Raises DeliveryError when it gives up.
        """

    async def close(self) -> None:
        """Close the connections."""


class LogDelivery:
    """Delivery to the log."""

    name = LOG
    # A line's slot is free after the next commit: with one slot the log would commit after each line.
    parallel = 100

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True for the opening and the close of an episode."""
        return bool(episode["event"] != "open")

    async def deliver(self, episode: dict[str, Any], _: float) -> None:
        """Log the event."""
        facts = {k: episode[k] for k in ("alert", "key", "episode", "start", "end", "alarms")}
        log.info(f"episode {episode['event']}", **facts)

    async def close(self) -> None:
        """Nothing has to be closed."""


class HttpDelivery:
    """Delivery to a webhook or an Alertmanager. Create it in the event loop that delivers."""

    def __init__(self, sink: Sink) -> None:
        self.name, self.parallel = sink.name, sink.parallel
        self._sink = sink
        token = sink.token.get_secret_value() if sink.token else None
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._client = httpx.AsyncClient(
            timeout=sink.timeout, verify=sink_context(sink) or True, headers=headers
        )
        self._failing = False

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True if the sink is notified of an event."""
        return accepts(self._sink, episode)

    async def deliver(self, episode: dict[str, Any], written: float) -> None:
        """POST the event; repeat it with growing waits after errors that may pass."""
        until = written + self._sink.give_up_after
        attempts = AsyncRetrying(
            stop=lambda state: state.attempt_number >= self._sink.attempts or time.time() > until,
            wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            retry=retry_if_exception(_may_pass),
            before_sleep=self._before_sleep,
            reraise=True,
        )
        try:
            await attempts(self._post, episode)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            tried = attempts.statistics["attempt_number"]
            raise DeliveryError(
                f"{self._describe(error)}; attempts made: {tried}", where=f"sink {self.name!r}"
            ) from None
        if self._failing:
            self._failing = False
            log.info("the sink accepts notifications again", sink=self.name)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _post(self, episode: dict[str, Any]) -> None:
        post = request(self._sink, episode)
        # httpx limits each single read. A slow answer has many of them, so the whole attempt is limited, too.
        async with asyncio.timeout(self._sink.timeout):
            answer = await self._client.post(post.url, content=post.body, headers=post.headers)
        answer.raise_for_status()

    def _before_sleep(self, state: RetryCallState) -> None:
        if not self._failing and state.outcome is not None:
            self._failing = True
            log.warning(
                "the sink doesn't accept notifications; they wait in Kafka",
                sink=self.name,
                error=self._describe(state.outcome.exception()),
            )

    def _describe(self, error: BaseException | None) -> str:
        """The error without the address, which is a secret for many webhooks."""
        if isinstance(error, httpx.HTTPStatusError):
            return f"HTTP status {error.response.status_code}"
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return f"no answer within {self._sink.timeout:g} s"
        # The messages of most other errors may contain the address.
        message = f": {error}" if isinstance(error, httpx.ConnectError) else ""
        return f"{type(error).__name__}{message}"


def _may_pass(error: BaseException) -> bool:
    """True for errors after which another attempt may succeed: all except those that reject the request (HTTP
    4xx).
    """
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        return status >= httpx.codes.INTERNAL_SERVER_ERROR or status in _PASSING_STATUS
    return isinstance(error, httpx.TransportError | TimeoutError)

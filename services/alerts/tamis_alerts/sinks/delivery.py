"""Delivery of a notification to a sink: to the log, or by repeated attempts of a transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_random_exponential,
)

from tamis.errors import TamisError
from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_alerts.core.notifications import Notification, Route, iso_time, notification
from tamis_alerts.sink_settings import LOG, Email, KafkaTopic, Mqtt, Sink
from tamis_alerts.sinks.notification import SendError, Transport, accepts
from tamis_alerts.sinks.transports.email import EmailTransport
from tamis_alerts.sinks.transports.http import HttpTransport
from tamis_alerts.sinks.transports.kafka import KafkaTransport
from tamis_alerts.sinks.transports.mqtt import MqttTransport

log = get_logger("alerts.sinks")

# Seconds between attempts: random, up to a limit that doubles from the first to the second number.
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 30.0


# Waits for so many seconds.
Sleep = Callable[[float], Coroutine[Any, Any, None]]


class DeliveryError(TamisError):
    """A sink has not accepted a notification. The message has the sink's name and never its address, which
    may be a secret.
    """

    retriable = True


class Delivery(Protocol):
    """Delivers the events of episodes to one sink."""

    name: str
    parallel: int
    error: str | None
    """The reason why the sink accepts nothing at present, without its address; None if it does."""

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True if the sink is notified of an event."""

    async def deliver(
        self,
        episode: dict[str, Any],
        written: float,
        names: ColumnNames = UNNAMED,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Return when the sink has accepted the event, which was `written` in seconds since 1970. `names` are
        those of its columns. `sleep` waits between two attempts.

        Raises DeliveryError when it gives up.
        """

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True)
class SharedSettings:
    """Routes to the sinks, and the address of the console: the same for all sinks."""

    routes: Sequence[Route] = ()
    console: str | None = None


DEFAULTS = SharedSettings()


class LogDelivery:
    """Delivery to the log."""

    name = LOG
    error: str | None = None
    # A line's slot is free after the next commit: with one slot the log would commit after each line.
    parallel = 100

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True for the opening and the close of an episode."""
        return bool(episode["event"] != "open")

    async def deliver(
        self,
        episode: dict[str, Any],
        written: float,
        names: ColumnNames = UNNAMED,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Log the event."""
        log.info(
            f"episode {episode['event']}",
            alert=episode["alert"],
            key=Notification(episode, names).readable_key,
            episode=episode["episode"],
            start=iso_time(episode["start"]),
            end=iso_time(episode["end"]),
            alarms=episode["alarms"],
        )

    async def close(self) -> None:
        """Nothing has to be closed."""


class SinkDelivery:
    """Delivery to a configured sink, with repeated attempts. Create it in the event loop that delivers."""

    def __init__(self, sink: Sink, kafka: KafkaSettings, shared: SharedSettings = DEFAULTS) -> None:
        self.name, self.parallel = sink.name, sink.parallel
        self._sink, self._shared = sink, shared
        self._transport = transport_of(sink, kafka)
        self.error: str | None = None

    def accepts(self, episode: dict[str, Any]) -> bool:
        """True if the sink is notified of an event."""
        return accepts(self._sink, episode, self._shared.routes)

    async def deliver(
        self,
        episode: dict[str, Any],
        written: float,
        names: ColumnNames = UNNAMED,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Send the event; repeat it with growing waits after errors that may pass."""
        until = written + self._sink.give_up_after
        attempts = AsyncRetrying(
            sleep=sleep,
            stop=lambda state: state.attempt_number >= self._sink.attempts or time.time() > until,
            wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            retry=retry_if_exception(lambda error: isinstance(error, SendError) and error.passing),
            before_sleep=self._before_sleep,
            reraise=True,
        )
        try:
            await attempts(self._attempt, notification(episode, names, self._shared.console))
        except SendError as error:
            tried = attempts.statistics["attempt_number"]
            raise DeliveryError(f"{error}; attempts made: {tried}", where=f"sink {self.name!r}") from None
        if self.error is not None:
            self.error = None
            log.info("the sink accepts notifications again", sink=self.name)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _attempt(self, notification: Notification) -> None:
        try:
            # Clients limit each single read. A slow answer has many of them, so the attempt is limited, too.
            async with asyncio.timeout(self._sink.timeout):
                await self._transport.send(notification)
        except TimeoutError:
            raise SendError(f"no answer within {self._sink.timeout:g} s") from None
        except SendError:
            raise
        except Exception as error:
            # One notification that can't be made must not end the service for all others. The text of the
            # error may have a value or an address.
            raise SendError(f"unexpected {type(error).__name__}", passing=False) from None

    def _before_sleep(self, state: RetryCallState) -> None:
        if state.outcome is None:
            return
        before, self.error = self.error, str(state.outcome.exception())
        if before is None:
            log.warning(
                "the sink doesn't accept notifications; they wait in Kafka", sink=self.name, error=self.error
            )


def transport_of(sink: Sink, kafka: KafkaSettings) -> Transport:
    """A new transport for a sink, for the running event loop."""
    if isinstance(sink, Mqtt):
        return MqttTransport(sink)
    if isinstance(sink, KafkaTopic):
        return KafkaTransport(sink, kafka)
    if isinstance(sink, Email):
        return EmailTransport(sink)
    return HttpTransport(sink)

"""Error of one attempt to notify a sink, and the interface of what makes such attempts."""

from __future__ import annotations

from typing import Protocol

from tamis_alerts.core.notifications import Notification


class SendError(Exception):
    """A sink has not accepted a notification. The message never has an address or a secret of the sink.

    `passing`: another attempt may succeed.
    """

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


class Transport(Protocol):
    """Makes single attempts to notify one sink. It is used in one event loop."""

    async def send(self, notification: Notification) -> None:
        """Return when the sink has accepted the event of an episode. Raises SendError or TimeoutError.

        The caller limits the time of an attempt by cancelling it.
        """

    async def close(self) -> None:
        """Close the connections."""

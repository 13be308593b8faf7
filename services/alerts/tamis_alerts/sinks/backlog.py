"""Events that wait for a sink: their number and the age of the oldest, as metrics and for readiness."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException

from tamis.messaging.heartbeats import LATE_SECONDS, SinkState
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.offset_tracker import OffsetTracker
from tamis_alerts.sinks.group_offsets import GroupOffsets
from tamis_alerts.sinks.silencing import Silencing

log = get_logger("alerts.sinks")


class Backlog:
    """The events that wait for one sink."""

    def __init__(
        self, sink: str, offsets: GroupOffsets, metrics: Metrics, silencing: Silencing | None
    ) -> None:
        self._sink, self._offsets, self._metrics, self._silencing = sink, offsets, metrics, silencing
        self._trouble = ""
        # Replaced as a whole, since other threads read it.
        self.state = SinkState()

    @property
    def trouble(self) -> str:
        """The number of notifications that wait, and for how long; empty if none has waited for long."""
        return self._trouble

    async def measure(self, trackers: Mapping[int, OffsetTracker], failing: str | None) -> None:
        """Show how many events wait, and for how long. `trackers` are by partition; `failing`: the reason why
        the sink accepts nothing at present.
        """
        waiting = 0
        for number, tracker in list(trackers.items()):
            try:
                waiting += await asyncio.to_thread(self._offsets.end, number) - tracker.committable
            except KafkaException as error:
                log.debug("can't ask how many events wait", sink=self._sink, error=str(error))
                waiting += len(tracker)
        oldest = min((t.oldest for t in trackers.values() if t.oldest is not None), default=None)
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest)
        self._metrics.set("tamis_notifications_waiting", waiting, sink=self._sink)
        self._metrics.set("tamis_notifications_oldest_seconds", age, sink=self._sink)
        if self._silencing is not None:
            self._metrics.set("tamis_notifications_held", self._silencing.held, sink=self._sink)
        since = None if oldest is None else int(oldest * 1_000_000)
        self.state = SinkState(waiting=waiting, oldest=since, error=failing)
        late = age > LATE_SECONDS
        self._trouble = f"sink {self._sink!r}: {waiting} wait, the oldest for {age:.0f} s" if late else ""

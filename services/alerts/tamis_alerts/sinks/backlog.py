"""Notifications that wait for a sink: their number and the age of the oldest, for metrics and readiness."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import KafkaException

from tamis.messaging.heartbeats import LATE_SECONDS, SinkState
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.notifications import event_id
from tamis_alerts.core.offset_tracker import OffsetTracker
from tamis_alerts.sinks.event_delivery import QueuedEvent
from tamis_alerts.sinks.group_offsets import GroupOffsets
from tamis_alerts.sinks.silencing import Silencing

log = get_logger("alerts.sinks")


class Backlog:
    """The notifications that wait for one sink, and the events in Kafka that its queue has not read yet."""

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

    async def measure(
        self, events: Iterable[QueuedEvent], trackers: Mapping[int, OffsetTracker], failing: str | None
    ) -> None:
        """Show how many notifications wait, and for how long. `events`: those that the queue has read and not
        done, in its order. `trackers` are by partition; `failing`: the reason why the sink accepts nothing at
        present.
        """
        times = [event.written for event in self._to_send(events)]
        oldest = min(times, default=None)
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest)
        held = 0 if self._silencing is None else self._silencing.held
        unread = await asyncio.to_thread(self._unread, {n: one.next for n, one in trackers.items()})
        self._metrics.set("tamis_notifications_waiting", len(times), sink=self._sink)
        self._metrics.set("tamis_sink_unread_events", unread, sink=self._sink)
        self._metrics.set("tamis_notifications_oldest_seconds", age, sink=self._sink)
        if self._silencing is not None:
            self._metrics.set("tamis_notifications_held", held, sink=self._sink)
        since = None if oldest is None else int(oldest * 1_000_000)
        self.state = SinkState(waiting=len(times), unread=unread, oldest=since, error=failing)
        late = age > LATE_SECONDS
        self._trouble = f"sink {self._sink!r}: {len(times)} wait, the oldest for {age:.0f} s" if late else ""

    def _to_send(self, events: Iterable[QueuedEvent]) -> Iterator[QueuedEvent]:
        """The events that will be sent, with the silences as they are now."""
        waiting: dict[str, QueuedEvent] = {}
        for event in events:
            # A held opening comes once more if the silences change while it waits.
            waiting.setdefault(event_id(event.episode), event)
        if self._silencing is None:
            yield from waiting.values()
            return
        sent = self._silencing.foresee((event.episode, event.decision) for event in waiting.values())
        yield from (event for event, one in zip(waiting.values(), sent, strict=True) if one)

    def _unread(self, offsets: Mapping[int, int]) -> int:
        """The events in Kafka from these offsets on, by partition; the number as it was if Kafka doesn't
        answer.
        """
        try:
            return sum(self._offsets.unread(number, at) for number, at in offsets.items())
        except KafkaException as error:
            log.debug("can't ask how many events wait", sink=self._sink, error=str(error))
            return self.state.unread

"""Delivery of one event of a queue: it is sent, held back by a silence, or becomes a dead letter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from tamis.messaging.column_names import ColumnNames
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.silences import Held
from tamis.messaging.topics import EPISODES
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.silences import Decision
from tamis_alerts.sinks.dead_letter_writer import write_dead_letter
from tamis_alerts.sinks.delivery import Delivery, DeliveryError
from tamis_alerts.sinks.silencing import Silencing
from tamis_alerts.sinks.slots import Slot, Slots

log = get_logger("alerts.sinks")


@dataclass
class QueuedEvent:
    """An event with its record, which becomes a dead letter if the sink doesn't take it. `written`: the time
    of the record, in seconds. `names`: those of its columns. `decision`: made when its turn comes.
    """

    episode: dict[str, Any]
    letter: DeadLetter
    written: float
    names: ColumnNames
    decision: Decision | None = None

    @staticmethod
    def of(
        sink: str,
        episode: dict[str, Any],
        value: bytes,
        *,
        place: tuple[int, int],
        written: float,
        names: ColumnNames,
    ) -> QueuedEvent:
        """The event of the record `value` at a partition and an offset."""
        of_event = tuple(names.headers)
        origin = "alerts", EPISODES, *place
        letter = DeadLetter(value, *origin, Reason.UNDELIVERED, "", sink=sink, of_event=of_event)
        return QueuedEvent(episode, letter, written, names)


class EventDelivery:
    """Delivers events of a queue to its sink. Create it in the event loop that delivers.

    `stopping` is set when the service stops: no dead letter is waited for any more.
    """

    def __init__(
        self,
        delivery: Delivery,
        kafka: KafkaSettings,
        metrics: Metrics,
        silencing: Silencing | None,
        stopping: threading.Event,
    ) -> None:
        self._delivery, self._kafka, self._metrics = delivery, kafka, metrics
        self._silencing, self._stopping = silencing, stopping
        self._slots = Slots(delivery.parallel)

    def concerns(self, episode: dict[str, Any]) -> bool:
        """True if the sink is notified of an event, or holds the opening of its episode."""
        closes_held = (
            episode["event"] == "closed" and self._silencing is not None and self._silencing.holds(episode)
        )
        return self._delivery.accepts(episode) or closes_held

    async def deliver(self, event: QueuedEvent, commit: Callable[[], Awaitable[None]]) -> None:
        """Deliver an event. `commit` marks its record as done, and returns when that is committed."""
        async with self._slots.taken() as slot:
            decision = event.decision = await self._decide(event)
            if decision == "tell":
                if not await self._send(event, slot):
                    return
            else:
                self._metrics.inc("tamis_notifications_total", sink=self._delivery.name, outcome="silenced")
            # The slot is free after the commit: a crash repeats at most `parallel` notifications.
            await commit()
            if decision == "skip" and self._silencing is not None:
                await self._silencing.remove(event.episode["episode"])

    async def deliver_held(self, held: Held, event: QueuedEvent) -> None:
        """Deliver an opening that was held, unless its episode has closed or is silenced again."""
        silencing = self._silencing
        assert silencing is not None
        async with self._slots.taken() as slot:
            if not silencing.is_due(held):
                return
            if self._delivery.accepts(held.event):
                # Its time counts from now on, however long it was held.
                event.written, event.decision = time.time(), "tell"
                await self._send(event, slot)
            else:
                await silencing.remove(held.episode)  # the routes have changed

    async def close(self) -> None:
        """Close the connections to the sink."""
        await self._delivery.close()

    async def _decide(self, event: QueuedEvent) -> Decision:
        """Decide if an event is sent now. If it isn't, Kafka has a record of that."""
        silencing, letter = self._silencing, event.letter
        if silencing is None:
            return "tell"
        decision = silencing.decide(event.episode)
        if decision == "skip":
            await silencing.close(event.episode, letter.offset)
        elif decision == "hold" and not await silencing.hold(
            event.episode, letter.partition, letter.offset, event.names
        ):
            return "tell"
        return decision

    async def _send(self, event: QueuedEvent, slot: Slot) -> bool:
        """Deliver an event, or make a dead letter of it; False if the service stops before that."""
        try:
            await self._delivery.deliver(event.episode, event.written, event.names, slot.sleep)
            outcome = "delivered"
        except DeliveryError as error:
            outcome = "given_up"
            if not await self._give_up(event.letter, error):
                return False
        self._metrics.inc("tamis_notifications_total", sink=self._delivery.name, outcome=outcome)
        if self._silencing is not None and event.episode["event"] == "opened":
            await self._silencing.remove(event.episode["episode"])
        return True

    async def _give_up(self, letter: DeadLetter, error: DeliveryError) -> bool:
        """Make a dead letter of a notification; False if the service stops before Kafka has it."""
        log.error(
            "notification given up: `tamis redeliver` sends it again",
            sink=self._delivery.name,
            offset=letter.offset,
            error=str(error),
        )
        complete = replace(letter, error=str(error))
        written = await asyncio.to_thread(write_dead_letter, self._kafka, complete, self._stopping)
        if written:
            self._metrics.inc("tamis_dead_letters_total", service="alerts", reason=Reason.UNDELIVERED)
        return written

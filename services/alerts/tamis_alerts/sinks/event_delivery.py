"""Delivery of one event of a queue: it is sent, held back by a silence, or becomes a dead letter.

A sink has slots: so many notifications are sent to it at the same time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaError, Producer

from tamis.messaging.column_names import ColumnNames
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.silences import Held
from tamis.messaging.topics import DEAD_LETTERS, EPISODES, MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.silences import Decision
from tamis_alerts.sinks.delivery import Delivery, DeliveryError
from tamis_alerts.sinks.silencing import Silencing

log = get_logger("alerts.sinks")

# Notifications that are begun, for each slot. Those that wait for their next attempt have no slot, so that
# notifications of other keys are sent meanwhile. A sink that is down must not get an attempt of each
# notification that waits in Kafka.
BEGUN_PER_SLOT = 8


class Slots:
    """The slots of one sink. Create them in the event loop that delivers."""

    def __init__(self, parallel: int) -> None:
        self._free = asyncio.Semaphore(parallel)
        self._begun = asyncio.Semaphore(parallel * BEGUN_PER_SLOT)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Slot]:
        """A slot, as soon as there is one; it is free after the block."""
        async with self._begun:
            slot = Slot(self._free)
            await slot.take()
            try:
                yield slot
            finally:
                slot.give_back()


class Slot:
    """The slot of one notification."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._taken = False

    async def take(self) -> None:
        """Wait for a slot."""
        await self._free.acquire()
        self._taken = True

    def give_back(self) -> None:
        """Let another notification have the slot."""
        if self._taken:
            self._taken = False
            self._free.release()

    async def sleep(self, seconds: float) -> None:
        """Wait between two attempts. Another notification may have the slot meanwhile."""
        self.give_back()
        await asyncio.sleep(seconds)
        await self.take()


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


PAUSE_SECONDS = 1.0


def write_dead_letter(kafka: KafkaSettings, letter: DeadLetter, stopping: threading.Event) -> bool:
    """Write a dead letter and wait until Kafka has it, for as long as that takes. False if `stopping` is set
    first.
    """
    producer = Producer(kafka.client_config(message_max_bytes=MAX_RECORD_BYTES, enable_idempotence=True))
    while not stopping.is_set():
        answers: list[KafkaError | None] = []
        producer.produce(
            DEAD_LETTERS,
            letter.payload,
            headers=dict(letter.headers()),
            on_delivery=lambda error, _, answers=answers: answers.append(error),  # type: ignore[misc]
        )
        while producer.flush(PAUSE_SECONDS) and not stopping.is_set():
            pass
        if answers == [None]:
            return True
        if answers and answers[0] is not None:
            log.error("a dead letter can't be written", sink=letter.sink, error=answers[0].str())
            stopping.wait(PAUSE_SECONDS)
    return False

"""Silences at the queue of one sink: its held openings, in memory and in Kafka.

The records of a sink are written by the member of its group that has the partition of the episode. The order
of the steps makes a crash between any two of them safe:

1. An opening is held in Kafka before its offset is committed.
2. The close of a held episode is noted in Kafka before its offset is committed, and the record is removed
   after that.
3. An opening is removed from Kafka after the sink has accepted it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tamis.errors import UnavailableError
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.connection import NOT_AUTHORIZED, NotAuthorizedError
from tamis.messaging.silences import Held, Silence, encode
from tamis.messaging.topic_reader import UnreadableRecords
from tamis.messaging.topics import MAX_RECORD_BYTES, SILENCES
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.silences import Decision, HeldOpenings
from tamis_alerts.silence_view import SilenceView, read_held

POLL_SECONDS = 0.01
# A record that isn't in Kafka after this time is written again.
WRITE_SECONDS = 5.0
PAUSE_SECONDS = 1.0

log = get_logger("alerts.silences")

# Without these rights, or without the topic, an event can't be held: it is sent.
_REFUSED = (
    *NOT_AUTHORIZED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.MSG_SIZE_TOO_LARGE,
)


class Silencing:
    """The silences that one sink obeys, and its held openings. `view` None: it obeys none.

    Openings that were held before the sink was told to obey no silence are sent.
    """

    def __init__(
        self, sink: str, view: SilenceView | None, kafka: KafkaSettings, metrics: Metrics | None = None
    ) -> None:
        self._unreadable = UnreadableRecords("alerts", metrics, log)
        self._sink, self._view, self._kafka = sink, view, kafka
        self._openings = HeldOpenings()
        self._seen: tuple[Silence, ...] | None = None
        self._new: list[Held] = []  # held since `due` was called
        self._again = 0  # the time at which the next silence begins or ends
        self._producer: Producer | None = None

    @property
    def _silences(self) -> tuple[Silence, ...]:
        return () if self._view is None else self._view.silences

    def decide(self, event: Mapping[str, Any]) -> Decision:
        """Decide if an event of an episode is sent now, held or left out."""
        return self._openings.decide(event, self._silences, _now())

    async def hold(self, event: dict[str, Any], partition: int, offset: int, names: ColumnNames) -> bool:
        """Hold an opening. False if Kafka refuses the record: then it must be sent."""
        held = Held(
            sink=self._sink,
            partition=partition,
            offset=offset,
            event=event,
            columns=names.key,
            key_times=names.key_times,
            row_times=names.row_times,
        )
        if not await self._write(held.record_key, encode(held)):
            return False
        self._openings.hold(held)
        self._new.append(held)
        return True

    async def close(self, event: Mapping[str, Any], offset: int) -> None:
        """Note that a held episode has closed."""
        held = self._openings.close(event["episode"], offset)
        await self._write(held.record_key, encode(held))

    async def remove(self, episode: str) -> None:
        """Remove an opening that was sent, or whose episode is over, if it is held."""
        held = self._openings.by_episode.get(episode)
        if held is not None:
            await self._write(held.record_key, None)
            self._openings.remove(episode)

    @property
    def held(self) -> int:
        """The number of openings that wait for the end of a silence."""
        return self._openings.held_back(self._silences, _now())

    def foresee(self, events: Iterable[tuple[Mapping[str, Any], Decision | None]]) -> Iterator[bool]:
        """For each event that waits, in the order of the queue, True if it will be sent with the silences as
        they are. An event comes with its decision if that was made.
        """
        return self._openings.foresee(events, self._silences, _now())

    def holds(self, event: Mapping[str, Any]) -> bool:
        """True if the opening of an event's episode is held."""
        return event["episode"] in self._openings.by_episode

    def due(self) -> list[Held]:
        """The openings that have to be sent now. All of them are compared with the silences when these
        change, and when one begins or ends.
        """
        silences, now = self._silences, _now()
        new, self._new = self._new, []
        if silences is self._seen and now < self._again:
            return [held for held in new if self._openings.is_due(held, silences, now)]
        self._seen = silences
        times = (time for one in silences for time in (one.start, one.until) if time > now)
        self._again = min(times, default=2**62)
        return list(self._openings.due(silences, now))

    def is_due(self, held: Held) -> bool:
        """True if an opening still has to be sent."""
        return self._openings.is_due(held, self._silences, _now())

    # ---- partitions: called in a rebalance, so these block

    def assign(self, starts: Mapping[int, int], stopping: threading.Event) -> None:
        """Take the held openings of these partitions, with the offsets at which their queues start."""
        while not stopping.is_set():
            try:
                found = list(read_held(self._kafka.client_config(), self._sink, self._unreadable))
                break
            except NotAuthorizedError as error:
                # The right is only for silences: without it, all other notifications must go on.
                log.error("held openings are left until the next start", sink=self._sink, error=str(error))
                return
            except UnavailableError as error:
                log.warning("held openings can't be read", sink=self._sink, error=str(error))
                stopping.wait(PAUSE_SECONDS)
        else:
            return
        for held in found:
            start = starts.get(held.partition)
            if start is None:
                continue
            if held.closed is not None and held.closed < start:
                self._send(held.record_key, None, None)  # a crash has kept it
            else:
                self._openings.hold(held)
        self._seen = None

    def revoke(self, partitions: set[int]) -> None:
        """Forget the openings of partitions that another worker gets, after what was written is in Kafka."""
        if self._producer is not None:
            self._producer.flush(WRITE_SECONDS)
        for episode, held in list(self._openings.by_episode.items()):
            if held.partition in partitions:
                self._openings.remove(episode)

    # ---- records

    async def _write(self, key: bytes, value: bytes | None) -> bool:
        """Write a record and wait until Kafka has it, however long that takes. False if Kafka refuses it."""
        while True:
            answers: list[KafkaError | None] = []
            producer = self._send(key, value, answers)
            while not answers:
                producer.poll(0)
                await asyncio.sleep(POLL_SECONDS)
            error = answers[0]
            if error is None:
                return True
            log.error("a record of silences can't be written", sink=self._sink, error=error.str())
            if error.code() in _REFUSED:
                return False
            await asyncio.sleep(PAUSE_SECONDS)

    def _send(self, key: bytes, value: bytes | None, answers: list[KafkaError | None] | None) -> Producer:
        if self._producer is None:
            self._producer = Producer(
                self._kafka.client_config(
                    message_max_bytes=MAX_RECORD_BYTES,
                    enable_idempotence=True,
                    message_timeout_ms=int(WRITE_SECONDS * 1000),
                    topic_metadata_propagation_max_ms=1000,
                )
            )

        def answered(error: KafkaError | None, _: Message) -> None:
            if answers is not None:
                answers.append(error)

        self._producer.produce(SILENCES, value, key, 0, on_delivery=answered)
        return self._producer


def _now() -> int:
    return time.time_ns() // 1000

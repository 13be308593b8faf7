"""Redelivery of notifications that were given up: dead letters are sent to their sinks again.

The offset of a consumer group records which dead letters of a sink have been sent again. So none is sent
twice, and the next call continues with the first one that the sink has not accepted.

An opening is left out if its episode has closed meanwhile, as the topic of episodes tells: the incident that
it opens would never be closed. If the close waits among the dead letters, too, both are sent in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from tamis.messaging.column_names import ColumnNames
from tamis.messaging.connection import Connection
from tamis.messaging.dead_letters import Reason
from tamis.messaging.topics import DEAD_LETTERS, EPISODES
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_alerts.core.notifications import Notification
from tamis_alerts.kafka_reads import read_to_end
from tamis_alerts.sink_settings import Sink
from tamis_alerts.sinks.delivery import DeliveryError, SharedSettings, SinkDelivery
from tamis_alerts.sinks.group_offsets import GROUP_PREFIX, REQUEST_SECONDS
from tamis_alerts.sinks.notification import read_episode

log = get_logger("alerts.sinks")


@dataclass(frozen=True)
class Outcome:
    """The number of notifications that were sent again to a sink, or would be sent. `fault`: the reason why
    the next one was not sent. `left_out`: the number of those whose episodes have closed.
    """

    sink: str
    sent: int
    fault: str = ""
    left_out: int = 0


class Redelivery:
    """Sends the dead letters of one sink again, in their order."""

    def __init__(self, sink: Sink, kafka: KafkaSettings, console: str | None) -> None:
        self._sink, self._kafka, self._console = sink, kafka, console
        self._connection = Connection.of(kafka.client_config())
        self._consumer = Consumer(
            {
                **kafka.client_config(),
                "group.id": f"{GROUP_PREFIX}redelivery.{sink.name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "error_cb": self._connection,
            }
        )

    def run(self, *, dry_run: bool, say: Callable[[str], None]) -> Outcome:
        """Send the dead letters that weren't sent again yet; stop at the first one that the sink doesn't
        accept.

        With `dry_run`, nothing is sent. `say` gets a line for each dead letter. Raises UnavailableError if
        Kafka can't be reached.
        """
        try:
            return asyncio.run(self._run(dry_run, say))
        except KafkaException as error:
            raise self._connection.error(error) from error
        finally:
            self._consumer.close()

    async def _run(self, dry_run: bool, say: Callable[[str], None]) -> Outcome:
        (at,) = self._consumer.committed([TopicPartition(DEAD_LETTERS, 0)], timeout=REQUEST_SECONDS)
        at.offset = at.offset if at.offset >= 0 else OFFSET_BEGINNING
        over = self._over(at)
        delivery = SinkDelivery(self._sink, self._kafka, SharedSettings(console=self._console))
        sent = left_out = 0
        try:
            for message, episode in self._letters(at):
                names = ColumnNames.of(message.headers())
                key = Notification(episode, names).readable_key
                what = f"{self._sink.name}: {episode['alert']} {key} {episode['event']}"
                if episode["event"] != "closed" and episode["episode"] in over:
                    say(f"{what}: left out, since the episode has closed")
                    left_out += 1
                else:
                    say(what)
                    if not dry_run:
                        try:
                            await delivery.deliver(episode, time.time(), names)
                        except DeliveryError as error:
                            return Outcome(self._sink.name, sent, str(error), left_out)
                    sent += 1
                if not dry_run:
                    self._consumer.commit(message=message, asynchronous=False)
        finally:
            await delivery.close()
        return Outcome(self._sink.name, sent, left_out=left_out)

    def _over(self, at: TopicPartition) -> set[str]:
        """The episodes that have closed and whose close isn't sent again."""
        events: dict[str, tuple[int, int]] = {}
        closing = set()
        for message, episode in self._letters(at):
            if episode["event"] == "closed":
                closing.add(episode["episode"])
            else:
                headers = dict(message.headers() or ())
                place = int(headers["source.partition"] or 0), int(headers["source.offset"] or 0)
                events.setdefault(episode["episode"], place)
        return closed_episodes(self._consumer, self._connection, events) - closing

    def _letters(self, at: TopicPartition) -> Iterator[tuple[Message, dict[str, Any]]]:
        """The dead letters of the sink that wait, with their events."""
        for message in read_to_end(self._consumer, self._connection, [at], batch=100):
            if not self._is_of_sink(message):
                continue
            try:
                episode = read_episode(message.value() or b"")
            except ValueError as error:
                log.error("a dead letter can't be read", offset=message.offset(), error=str(error))
                continue
            yield message, episode

    def _is_of_sink(self, message: Message) -> bool:
        headers = dict(message.headers() or ())
        ours = {"service": b"alerts", "reason": Reason.UNDELIVERED.encode(), "sink": self._sink.name.encode()}
        return ours.items() <= headers.items()


def closed_episodes(
    consumer: Consumer, connection: Connection, events: Mapping[str, tuple[int, int]]
) -> set[str]:
    """Those of the episodes that have closed. `events` has an event of each: its partition and its offset in
    the topic of episodes. `consumer` must have `enable.partition.eof` set.

    The topic is read from the first of these events on, since all events of an episode are in one partition.
    Raises UnavailableError and KafkaException.
    """
    starts: dict[int, int] = {}
    for partition, offset in events.values():
        starts[partition] = min(offset, starts.get(partition, offset))
    if not starts:
        return set()
    found = set()
    places = [TopicPartition(EPISODES, partition, offset) for partition, offset in starts.items()]
    for message in read_to_end(consumer, connection, places, batch=500):
        try:
            event = read_episode(message.value() or b"")
        except ValueError:
            continue  # the queue of the sink has told of it
        if event["event"] == "closed" and event["episode"] in events:
            found.add(event["episode"])
    return found

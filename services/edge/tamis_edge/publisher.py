"""The way to Kafka: an idempotent producer, and the spool in front of it while Kafka is away."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.errors import UnavailableError
from tamis.messaging.topics import MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis_edge.core.records import ANY_PARTITION, Record
from tamis_edge.spool import Spool

_log = get_logger("edge.publisher")

QUEUE = 50_000  # records on their way before new ones wait: some seconds' worth, and a bound of memory
AWAY = 3.0  # seconds without any delivery while records are on their way, after which Kafka counts as away
LOG_LEVEL = 2  # librdkafka writes to stderr by itself; what matters of it comes as errors
DRAIN = 5_000  # records read from the spool at a time


class Sender(Protocol):
    """Whose records they are."""

    out: deque[Record]

    def safe(self, token: int) -> None:
        """The record can't be lost any more."""
        ...

    def carries_tuple(self, token: int) -> bool:
        """Whether the record is of a reading, not progress or a final record."""
        ...

    def retract(self, token: int) -> None:
        """The progress or final record was not sent, and has to be made again."""
        ...


class Publisher:
    """Belongs to one thread; delivery reports arrive in `poll`."""

    def __init__(
        self, settings: KafkaSettings, edge: str, spool: Spool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._last_delivery = clock()
        self._on_way = 0
        self._was_away = False
        self._delivered_spool: list[int] = []
        self.fault: str | None = None
        self._producer = Producer(
            {
                **settings.client_config(),
                "client.id": f"tamis-edge-{edge}",
                "enable.idempotence": True,
                # What is queued must never expire: the protocol counts on order without gaps.
                "message.timeout.ms": 0,
                "message.max.bytes": MAX_RECORD_BYTES,
                "linger.ms": 5,
                "queue.buffering.max.messages": 4 * QUEUE,
                "reconnect.backoff.max.ms": 2_000,
                "partitioner": "murmur2_random",
                "error_cb": self._on_error,
                "log_level": LOG_LEVEL,
            }
        )

    @property
    def away(self) -> bool:
        """Kafka doesn't take what it is sent."""
        return self._on_way > 0 and self._clock() - self._last_delivery > AWAY

    @property
    def spooling(self) -> bool:
        """Records of shards that are bound to this edge go to the disk."""
        return self._spool.waiting or self.away or self._on_way >= QUEUE

    @property
    def on_way(self) -> int:
        """Records that Kafka has not confirmed yet."""
        return self._on_way

    def send(self, sender: Sender, movable: bool) -> None:
        """Take what the sender has to send, in order, as far as there is room for it.

        A shard that can move keeps its records until they are published: spooled ones would stay behind when
        it moves.
        """
        out = sender.out
        if not movable and self.spooling:
            self._to_spool(sender)
            return
        while out and self._on_way < QUEUE:
            record = out[0]
            if not self._produce(record, partial(self._delivered, sender, record.token)):
                return
            out.popleft()

    def say(self, topic: str, key: bytes, value: bytes) -> bool:
        """Send a record of the edge's own, which may be lost with the edge. Not while Kafka is away: it will
        be outdated.
        """
        if self.away or self._on_way >= QUEUE:
            return False
        arrival = time.time_ns() // 1_000_000
        return self._produce(
            Record(0, topic, ANY_PARTITION, key, value, arrival), lambda error, _: self._count()
        )

    def poll(self) -> None:
        """Deliver reports, and send on what the spool holds."""
        self._producer.poll(0)
        if self._delivered_spool:
            self._spool.delivered(self._delivered_spool)
            self._delivered_spool = []
        if self._on_way == 0:
            self._last_delivery = self._clock()
        if self.away != self._was_away:
            self._was_away = not self._was_away
            if self._was_away:
                _log.warning("Kafka takes nothing; records of shards that can't move go to the spool")
            else:
                _log.info("Kafka is back", spooled=self._spool.records)
        while self._spool.waiting and not self.away and self._on_way < QUEUE - DRAIN:
            for record in self._spool.take(DRAIN):
                # With this much room the queue takes them: a refusal would break the order.
                if not self._produce(record, partial(self._spool_delivered, record.token)):
                    raise UnavailableError("the producer's queue is full", hint="raise its limit of bytes")

    def flush(self, seconds: float) -> int:
        """Wait for what is on its way; returns how many records still are."""
        until = self._clock() + seconds
        while self._on_way and self._clock() < until:
            self._producer.poll(0.05)
        if self._delivered_spool:
            self._spool.delivered(self._delivered_spool)
            self._delivered_spool = []
        return self._on_way

    def close(self) -> None:
        """Give up what is on its way: it is not done with, and comes again."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._producer.poll(0)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None where it doesn't exist or Kafka can't be asked. Any thread
        may ask.
        """
        try:
            found = self._producer.list_topics(topic, timeout=5).topics[topic]
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    def _to_spool(self, sender: Sender) -> None:
        records = []
        while sender.out:
            record = sender.out.popleft()
            if sender.carries_tuple(record.token):
                records.append(record)
            else:
                # Progress goes behind the tuples that it covers, and these are not on their way yet.
                sender.retract(record.token)
        if records:
            self._spool.append(records)
            for record in records:
                sender.safe(record.token)

    def _produce(self, record: Record, report: Callable[[KafkaError | None, Message], None]) -> bool:
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=report,
                timestamp=record.arrival,
                headers=record.headers,  # type: ignore[arg-type]
            )
        except BufferError:
            return False
        except KafkaException as error:
            report(error.args[0], None)  # type: ignore[arg-type]
            return True
        finally:
            self._producer.poll(0)
        self._on_way += 1
        return True

    def _count(self) -> None:
        self._on_way -= 1
        self._last_delivery = self._clock()

    def _delivered(self, sender: Sender, token: int, error: KafkaError | None, message: Message) -> None:
        self._count()
        if error is None:
            sender.safe(token)
        else:
            self._failed(error, message)

    def _spool_delivered(self, token: int, error: KafkaError | None, message: Message) -> None:
        self._count()
        if error is None:
            self._delivered_spool.append(token)
        else:
            self._failed(error, message)

    def _failed(self, error: KafkaError, message: Message) -> None:
        if error.code() not in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            self.fault = f"{message.topic() if message else 'a topic'}: {error}"

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.fault = str(error)
        _log.debug("Kafka", error=str(error))

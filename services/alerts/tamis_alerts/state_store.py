"""State store of this worker's alerts and keys: in memory, with a changelog in Kafka.

The changelog is partitioned like the alarms. A worker that gets a partition reads its changelog from the
beginning to the end before it takes an alarm. A table of Faust isn't used for three reasons: it takes 0.1 ms
for each record, it keeps entries of partitions that have moved to another worker, and it continues after its
recovery has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.messaging.connection import NOT_AUTHORIZED, Connection
from tamis.messaging.rights import EPISODES_CHANGELOG
from tamis.messaging.topics import COMMON_CONFIG, EPISODES, MAX_RECORD_BYTES
from tamis.telemetry import get_logger
from tamis_alerts.core.episodes import Episode, KeyState
from tamis_alerts.kafka_reads import read_to_end

# Earlier versions used a table of Faust, which gave the topic this name. Their records are still read.
CHANGELOG = EPISODES_CHANGELOG

# Separates a key from the number of a closed chunk. Keys are JSON arrays, so they end with a bracket.
_CHUNK = b"#"
# Keys that are written at a time. After a crash the events of as many keys may be written again. Sinks
# recognise them, since they look back further.
KEYS_PER_WRITE = 1_000
REQUEST_SECONDS = 10.0

log = get_logger("alerts")


@dataclass
class Entry:
    """The state of one alert and key, and the partition of its alarms."""

    alert: str
    key: tuple[Any, ...]
    partition: int
    state: KeyState


# A key, its changed state, and the events to write.
Change = tuple[bytes, Entry, Iterable[Episode]]


class StateStore:
    """The states of all alerts and keys in `partitions`. Only one thread may use it at a time. `config`: the
    configuration of a client of confluent-kafka.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._connection = Connection.of(config)
        self._faults: list[KafkaError] = []
        self._producer = Producer(
            {
                **config,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.max.bytes": MAX_RECORD_BYTES,
                "linger.ms": 5,
                "delivery.report.only.error": True,
                "error_cb": self._connection,
            }
        )
        self.entries: dict[bytes, Entry] = {}
        self.partitions: frozenset[int] = frozenset()

    def create(self, partitions: int) -> None:
        """Create the changelog if it doesn't exist. Raises UnavailableError."""
        config = {"cleanup.policy": "compact", **COMMON_CONFIG}
        topic = NewTopic(CHANGELOG, partitions, -1, config=config)
        admin = AdminClient(dict(self._config))
        try:
            admin.create_topics([topic])[CHANGELOG].result(REQUEST_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in NOT_AUTHORIZED:
                raise self._connection.not_authorized(f"no Create on topic {CHANGELOG}") from error
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._connection.error(error) from error

    def entry(self, key: bytes, alert: str, values: tuple[Any, ...], partition: int) -> Entry:
        """The entry of a record key, which consists of an alert and the values of its partition key. It is
        created if it doesn't exist.
        """
        found = self.entries.get(key)
        if found is None:
            found = self.entries[key] = Entry(alert, values, partition, KeyState())
        return found

    async def write(self, changes: list[Change]) -> None:
        """Write changes. The events of a key are written before its state, so that a crash loses none.

        Raises UnavailableError if Kafka doesn't take them.
        """
        for start in range(0, len(changes), KEYS_PER_WRITE):
            some = changes[start : start + KEYS_PER_WRITE]
            for key, entry, events in some:
                for event in events:
                    self._send(EPISODES, key, event.to_bytes(), entry.partition, event.headers)
            await self._sent()
            for key, entry, _ in some:
                # Closed chunks come first: they count once the record of the key says so.
                for number, chunk in entry.state.alarm_ids.changes():
                    self._send(CHANGELOG, b"%b%b%d" % (key, _CHUNK, number), chunk, entry.partition)
                record = entry.state.to_bytes()
                self._send(CHANGELOG, key, record, entry.partition)
                if record is None:
                    self.entries.pop(key, None)
            await self._sent()

    def load(self, partitions: Collection[int]) -> None:
        """Replace all states by the states of these partitions in the changelog. Blocks.

        Raises UnavailableError.
        """
        self.entries.clear()
        for message in self._changelog(partitions):
            try:
                self._restore(message)
            except (ValueError, TypeError, msgspec.MsgspecError, RecursionError) as error:
                place = message.partition(), message.offset()
                log.error("a state of episodes can't be read and is skipped", place=place, error=repr(error))
        for key, entry in list(self.entries.items()):
            entry.state.alarm_ids.restored()
            if not entry.state:
                del self.entries[key]
        self.partitions = frozenset(partitions)

    def _restore(self, message: Message) -> None:
        """Take a record of the changelog."""
        key = message.key() or b""
        if key.endswith(b"]"):
            self._loaded_entry(key, message).state.restore(message.value())
        else:
            key, _, number = key.rpartition(_CHUNK)
            self._loaded_entry(key, message).state.alarm_ids.restore_closed(int(number), message.value())

    def _loaded_entry(self, key: bytes, message: Message) -> Entry:
        found = self.entries.get(key)
        if found is None:
            alert, *values = orjson.loads(key)
            found = self.entry(key, alert, tuple(values), message.partition() or 0)
        return found

    def _changelog(self, partitions: Collection[int]) -> Iterator[Message]:
        connection = Connection.of(self._config)
        consumer = Consumer(
            {
                **self._config,
                # librdkafka requires a name, though the consumer neither joins a group nor commits.
                "group.id": "tamis-alerts-recovery",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "error_cb": connection,
            }
        )
        try:
            starts = [TopicPartition(CHANGELOG, number, OFFSET_BEGINNING) for number in partitions]
            yield from read_to_end(consumer, connection, starts, batch=10_000)
        finally:
            consumer.close()

    def _send(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        partition: int,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=self._not_delivered, headers=list(headers)
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _not_delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._faults.append(error)

    async def _sent(self) -> None:
        """Return when Kafka has all records that were sent. The client itself repeats failed requests."""
        while await asyncio.to_thread(self._producer.flush, 1.0):
            pass
        if self._faults:
            raise self._connection.error(self._faults[0])

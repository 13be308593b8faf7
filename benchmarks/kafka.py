"""Topics of the embedded broker: created and filled before a measurement, and counted."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings

PARTITIONS = 4

# A broker that needs longer is broken.
_SECONDS = 60.0


class Topics:
    """The topics of a broker, which have `partitions` partitions unless a call says otherwise."""

    def __init__(self, bootstrap: str, partitions: int = PARTITIONS) -> None:
        self._partitions = partitions
        # This configuration silences the log of librdkafka: errors are raised.
        self.config = KafkaSettings(bootstrap=bootstrap).client_config()
        self._admin = AdminClient(self.config)
        self._reader = Consumer({**self.config, "group.id": "benchmark"})

    def create(self, names: Collection[str], partitions: int | None = None) -> None:
        """Create topics, and wait until clients see them."""
        count = self._partitions if partitions is None else partitions
        for made in self._admin.create_topics([NewTopic(name, count, 1) for name in names]).values():
            made.result(_SECONDS)
        # Right after that a broker may still answer clients that it doesn't know a topic.
        deadline = time.monotonic() + _SECONDS
        while any(self._missing(name) for name in names):
            if time.monotonic() > deadline:
                raise UnavailableError(f"the topics don't exist {_SECONDS:.0f} s after their creation")
            time.sleep(0.1)

    def _missing(self, name: str) -> bool:
        return self._reader.list_topics(name, timeout=_SECONDS).topics[name].error is not None

    def until_shared(self, group: str, members: int) -> None:
        """Wait until so many members of a consumer group have partitions."""
        deadline = time.monotonic() + _SECONDS
        while True:
            found = self._admin.describe_consumer_groups([group])[group].result(_SECONDS).members
            if sum(bool(one.assignment.topic_partitions) for one in found) == members:
                return
            if time.monotonic() > deadline:
                raise UnavailableError(f"the group {group} didn't share its topic within {_SECONDS:.0f} s")
            time.sleep(0.1)

    def fill(self, records: Iterable[tuple[str, bytes | None, bytes, int]]) -> None:
        """Write records (topic, key, value, partition; -1: by key), and wait until the broker has all."""
        producer = Producer(
            {
                **self.config,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        for number, (topic, key, value, partition) in enumerate(records):
            while True:
                try:
                    producer.produce(topic, value, key, partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        if left := producer.flush(_SECONDS):
            raise UnavailableError(f"the broker did not take {left} records within {_SECONDS:.0f} s")

    def close(self) -> None:
        """Close the connections; the broker is stopped after that."""
        self._reader.close()

    def end(self, topic: str) -> int:
        """Number of records ever written to a topic."""
        return sum(
            self._reader.get_watermark_offsets(TopicPartition(topic, number), timeout=_SECONDS)[1]
            for number in range(self._partitions)
        )

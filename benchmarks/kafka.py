"""Topics of the embedded broker: made, filled before a measurement, and counted."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings

PARTITIONS = 4

# Far more than it takes: a broker that answers no sooner is broken.
_SECONDS = 60.0


class Topics:
    """The topics of one broker, by its bootstrap string."""

    def __init__(self, bootstrap: str) -> None:
        # librdkafka writes to stderr by itself; what matters comes as errors.
        self.config = KafkaSettings(bootstrap=bootstrap).client_config()
        self._admin = AdminClient(self.config)
        self._reader = Consumer({**self.config, "group.id": "benchmark"})

    def create(self, names: Iterable[str], partitions: int = PARTITIONS) -> None:
        """Make them."""
        for made in self._admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
            made.result(_SECONDS)

    def fill(self, records: Iterable[tuple[str, bytes | None, bytes, int]]) -> None:
        """Write (topic, key, value, partition; -1: by key), and wait until the broker has them all."""
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
        """Let go of the connections, before the broker goes."""
        self._reader.close()

    def end(self, topic: str, partitions: int = PARTITIONS) -> int:
        """How many records were ever written to it."""
        return sum(
            self._reader.get_watermark_offsets(TopicPartition(topic, number), timeout=_SECONDS)[1]
            for number in range(partitions)
        )

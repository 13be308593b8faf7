"""A feeder that writes its readings to topics of Kafka, which edges read as sources."""

from __future__ import annotations

from collections import Counter

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.e2e.feeder import Feeder

from tamis.messaging.topic_reader import TopicReader

PARTITIONS = 4
# Sources of an edge: the topics of a `KafkaFeeder`.
SOURCES = """sources:
  - {kind: kafka, name: ka, stream: air, topic: raw.air}
  - {kind: kafka, name: ks, stream: surface, topic: raw.surface}
"""


class KafkaFeeder(Feeder):
    """A feeder to `raw.air` and `raw.surface`, with the readings of a station in one partition, in order."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        super().__init__(seed)
        self._bootstrap = bootstrap
        # Stations k0 to k7: each partition has two, so that each gets readings.
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )

    def post_lines(self, stream: str, lines: list[bytes]) -> None:
        for line in lines:
            partition = int(orjson.loads(line)["station"].removeprefix("k")) % PARTITIONS
            self._producer.produce(f"raw.{stream}", line, partition=partition)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until Kafka has all readings, and assert that it has each of them once."""
        assert self._producer.flush(60) == 0
        with TopicReader({"bootstrap.servers": self._bootstrap}, ["raw.air", "raw.surface"]) as reader:
            kept = Counter(record.value for record in reader.snapshot())
        assert kept.total() == len(kept) == sum(map(len, self.posted.values()))


def create_raw_topics(bootstrap: str, partitions: int = PARTITIONS) -> None:
    """Create the topics of raw readings."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic("raw.air", partitions, 1), NewTopic("raw.surface", partitions, 1)]
    for made in admin.create_topics(topics).values():
        made.result(30)

"""A Kafka source over a slow link: the real topic and partition code over a simulated consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import numpy as np
from confluent_kafka import KafkaError, TopicPartition
from tests.fixtures.kafka_message import Message
from tests.model.kafka import Durable, Landing, Ready, Source, columns_of
from tests.model.readings import Shard

from tamis.settings import KafkaSettings
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.kafka import topic as kafka_topic
from tamis_edge.sources.kafka.shard import KafkaShard

if TYPE_CHECKING:
    from tests.model.edge import Edge

_SETTINGS = KafkaSettings()
_AT_ONCE = 20  # messages of one fetch


class Consumer:
    """confluent_kafka's Consumer as a source uses it. A fetch is under way for `seconds`, and every seek,
    pause and resume throws it away.
    """

    def __init__(self, shard: Shard, at: int, seconds: float, edge: Edge) -> None:
        self._shard, self._at, self._seconds, self._edge = shard, at, seconds, edge
        self._paused = True
        self._due: float | None = None
        self._told = -1  # the end that was told last
        self.failed: Callable[[KafkaError], None] = lambda error: None

    def consume(self, limit: int, timeout: float) -> list[Message]:
        if not self._edge.connected:
            self._due = None
            self.failed(KafkaError(KafkaError._TRANSPORT, "cut off"))
            return []
        if self._paused:
            return []
        now = self._edge.world.now / 1e6
        if self._due is None:
            self._due = now + self._seconds
        if now < self._due:
            return []
        self._due, first = None, self._at
        self._at = min(self._shard.available, first + _AT_ONCE)
        found = [Message(offset) for offset in range(first, self._at)]
        if self._at == self._shard.available != self._told:
            self._told = self._at
            found.append(Message(self._at, end=True))
        return found

    def seek(self, to: TopicPartition) -> None:
        self._at = max(0, to.offset)
        self._fetch_anew()

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self._paused = True
        self._fetch_anew()

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self._paused = False
        self._fetch_anew()

    def _fetch_anew(self) -> None:
        self._due, self._told = None, -1


class Ends:
    """The broker's answers to questions for the end of the partition, or for its beginning, for an edge that
    is connected. Nothing is deleted, so it begins at 0.
    """

    def __init__(self, shard: Shard, edge: Edge, beginnings: bool) -> None:
        self._shard, self._edge, self._beginnings = shard, edge, beginnings
        self._answers: dict[int, int] = {}

    def ask(self, partitions: Iterable[int]) -> None:
        if self._edge.connected:
            self._answers = dict.fromkeys(partitions, 0 if self._beginnings else self._shard.available)

    def answers(self) -> dict[int, int]:
        found, self._answers = self._answers, {}
        return found

    def forget(self) -> None:
        self._answers = {}


class FarSource(Source):
    """A shard at one edge whose readings come over such a link."""

    def __init__(
        self, shard: Shard, durable: Durable, landings: list[Landing], edge: Edge, seconds: float
    ) -> None:
        super().__init__(shard, durable, landings)
        consumer = Consumer(shard, durable.commit.done, seconds, edge)
        config = KafkaSource(name="far", kind="kafka", topic="readings", stream=shard.stream)
        with (
            patch.object(kafka_topic, "Consumer", lambda config: consumer),
            patch.object(
                kafka_topic,
                "PartitionEnds",
                lambda config, topic, *, beginnings=False: Ends(shard, edge, beginnings),
            ),
        ):
            self._topic = kafka_topic.KafkaTopic(
                config, _SETTINGS, lambda _: None, lambda _: None, clock=lambda: edge.world.now / 1e6
            )
        consumer.failed = self._topic._on_error
        self._part = KafkaShard(self._topic, config, 0, durable.commit, lambda: edge.world.now / 1e6)
        self._topic._shards[0] = self._part

    def start(self, offset: int, decoder: Decoder) -> None:
        self._part.start(offset, decoder)

    def decode_by(self, decoder: Decoder) -> None:
        self._part.decode_by(decoder)

    def stop(self) -> None:
        self._part.stop()

    @property
    def reached(self) -> int:
        """Up to which offset readings have come."""
        return self._part.next or 0

    def turn(self) -> None:
        """What the edge's loop has a source do in each of its rounds."""
        self._topic.shards()

    def poll(self, limit: int, now: int) -> Ready | None:
        self.turn()
        found: Any = self._part.poll(limit, now)
        if found is None:
            return None
        offsets = cast(np.ndarray, found.offsets)
        rows = [self.shard.log[offset] for offset in offsets]
        return Ready(offsets, np.full(len(rows), now), columns_of(rows), self.replayed or self.shard.swallows)

"""Commits of a consumer group: offsets, with the other fields of a shard's commit as their metadata."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tamis.errors import UnavailableError
from tamis_edge.core.commit import Commit
from tamis_edge.sources.kafka.shard import KafkaShard


def offset_of(shard: KafkaShard, commit: Commit) -> TopicPartition:
    """The offset to commit, with its metadata."""
    return TopicPartition(shard.topic, shard.partition, commit.done, commit.to_metadata())


class GroupCommits:
    """Commits that are on their way to the broker, at most one for each partition of a topic.

    A partition may move away and come back while a commit of its old shard is on its way. The result of that
    commit concerns neither the new shard nor its first commit; the offset tells the two commits apart.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[KafkaShard, Commit, Future[None]]] = {}

    def commit(self, consumer: Consumer, shard: KafkaShard, commit: Commit) -> Future[None]:
        """Send a commit; the future is done once the broker has it."""
        done: Future[None] = Future()
        with self._lock:
            replaced = self._pending.get(shard.partition)
            self._pending[shard.partition] = (shard, commit, done)
        if replaced is not None:
            replaced[2].set_exception(UnavailableError("the partition has moved", where=replaced[0].name))
        try:
            consumer.commit(offsets=[offset_of(shard, commit)], asynchronous=True)
        except KafkaException as error:
            self._finish(shard.partition, commit.done, str(error))
        return done

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """The client's callback."""
        for at in partitions:
            fault = at.error or error
            self._finish(at.partition, at.offset, str(fault) if fault else None)

    def _finish(self, partition: int, offset: int, fault: str | None) -> None:
        with self._lock:
            pending = self._pending.get(partition)
            if pending is None or pending[1].done != offset:
                return
            del self._pending[partition]
        shard, commit, done = pending
        if fault is not None:
            done.set_exception(UnavailableError(f"the commit failed: {fault}", where=self._topic))
            return
        shard.commit_is(commit)
        done.set_result(None)

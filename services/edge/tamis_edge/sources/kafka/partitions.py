"""Requests to the broker about the partitions of a topic: commits of the group, ends, and beginnings.

A commit is an offset, with the other fields of a shard's commit as its metadata.

The ends are requested over a separate connection. The client tells a consumer only once that it has reached
the end of a partition. To be told again, the consumer would have to seek, and a seek discards the fetch in
progress. Over a slow link, where a fetch takes longer than the time between two seeks, no reading would ever
arrive. On a separate connection the answer also doesn't wait behind a fetch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tamis.errors import UnavailableError
from tamis.messaging.connection import listed_offset
from tamis.telemetry.logs import get_logger
from tamis_edge.core.commit import Commit
from tamis_edge.sources.kafka.shard import KafkaShard


def offset_of(shard: KafkaShard, commit: Commit) -> TopicPartition:
    """The offset to commit, with its metadata."""
    return TopicPartition(shard.topic, shard.partition, commit.done, commit.to_metadata())


class GroupCommits:
    """Commits that are on their way to the broker, at most one for each partition of a topic.

    A partition may move away and come back while a commit of its old shard is on its way. The result of that
    commit concerns neither the new shard nor its first commit; offset and metadata tell the two commits
    apart.

    `unknown`: why a commit of a shard with partial aggregates failed, which may still be stored. Another run
    must begin from what is stored, in a new generation of the group, whose broker refuses the old commit.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self.unknown: str | None = None
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
            self._finish(offset_of(shard, commit), str(error))
        return done

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """The client's callback."""
        for at in partitions:
            fault = at.error or error
            self._finish(at, str(fault) if fault else None)

    def _finish(self, at: TopicPartition, fault: str | None) -> None:
        with self._lock:
            pending = self._pending.get(at.partition)
            if pending is None or (pending[1].done, pending[1].to_metadata()) != (at.offset, at.metadata):
                return
            del self._pending[at.partition]
        shard, commit, done = pending
        if fault is not None:
            self.unknown = fault if commit.cuts is not None else self.unknown
            done.set_exception(UnavailableError(f"the commit failed: {fault}", where=self._topic))
            return
        shard.commit_is(commit)
        done.set_result(None)


_log = get_logger("edge.kafka")

SECONDS = 10.0  # after which a question that has no answer is given up


class PartitionEnds:
    """The ends of one topic, or the beginnings. It is used by one thread, and never waits."""

    def __init__(self, config: Mapping[str, Any], topic: str, *, beginnings: bool = False) -> None:
        self._config, self._topic = dict(config), topic
        self._beginnings = beginnings
        self._client: AdminClient | None = None  # made for the first question
        self._asked: dict[int, tuple[Future[Any], float]] = {}  # with the time, monotonic seconds

    def ask(self, partitions: Iterable[int]) -> None:
        """Ask for the ends of these partitions, except those for which an answer is still expected."""
        now = time.monotonic()
        # librdkafka may leave a question open for ever.
        self._asked = {p: one for p, one in self._asked.items() if now - one[1] < 2 * SECONDS}
        wanted = [partition for partition in partitions if partition not in self._asked]
        if not wanted:
            return
        if self._client is None:
            self._client = AdminClient(self._config)
        place = OffsetSpec.earliest() if self._beginnings else OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = self._client.list_offsets(
            dict.fromkeys((TopicPartition(self._topic, p) for p in wanted), place),
            # The consumer reads up to there, too.
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=SECONDS,
        )
        self._asked.update({at.partition: (answer, now) for at, answer in found.items()})

    def answers(self) -> dict[int, int]:
        """The ends that have arrived since the last call, by partition."""
        ends: dict[int, int] = {}
        for partition, answer in [(p, a) for p, (a, _) in self._asked.items() if a.done()]:
            del self._asked[partition]
            try:
                ends[partition] = listed_offset(answer, 0)
            except KafkaException as error:
                _log.debug("a partition's end is not known", topic=self._topic, error=str(error))
        return ends

    def forget(self) -> None:
        """Ignore the answers to all questions so far."""
        self._asked.clear()

    def close(self) -> None:
        """Close the connection."""
        self._asked.clear()
        self._client = None


BEGIN_SECONDS = 10.0  # for the question where the partition begins


def reposition(consumer: Consumer, shard: KafkaShard, lost: Callable[[int], None]) -> None:
    """Continue with the first offset that a partition has. `lost` gets the number of readings that Kafka
    deleted before they were read. If Kafka doesn't answer, the shard stays `misplaced`.
    """
    shard.at_end, shard.misplaced = False, True
    place = TopicPartition(shard.topic, shard.partition)
    try:
        first, end = consumer.get_watermark_offsets(place, timeout=BEGIN_SECONDS)
    except KafkaException as error:
        _log.warning("can't ask where a partition begins", shard=shard.name, error=str(error))
        return
    if shard.next is not None and shard.next < first:
        lost(first - shard.next)
        _log.error(
            "Kafka deleted readings before this edge had read them: its retention is too short",
            shard=shard.name,
            lost=first - shard.next,
            next=first,
        )
    else:
        _log.error(
            "a partition does not have the next offset: its topic may have been deleted and created again; "
            "reading goes on at the first offset that it has",
            shard=shard.name,
            offset=shard.next,
            end=end,
            next=first,
        )
    shard.next, shard.misplaced = first, False
    # The client has given the partition up: seeking in it is an error.
    at = TopicPartition(shard.topic, shard.partition, first)
    consumer.incremental_unassign([at])
    consumer.incremental_assign([at])

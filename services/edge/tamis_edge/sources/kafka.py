"""The Kafka source: a topic of readings, its partitions shared by the edges of one consumer group.

A shard's commit is the group's offset, and the rest of it the offset's metadata: it moves with the partition.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis_edge.config import KafkaSource
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder
from tamis_edge.sources.base import READ_BYTES, Payloads

_log = get_logger("edge.kafka")

PATIENCE = 10.0  # seconds for calls that wait for the group's coordinator
BUFFER = 20_000  # messages of one partition that wait here before it is paused
AT_ONCE = BUFFER // 2  # messages taken from the client at once
TELL_AGAIN = 1.0  # seconds without word of a partition after which it is asked again for its end


class KafkaShard:
    """One assigned partition."""

    movable = True
    declared = True
    ended = False

    def __init__(self, owner: KafkaTopic, source: KafkaSource, partition: int, commit: Commit) -> None:
        self.name = f"{source.stream}:{source.topic}/{partition}"
        self.stream, self.topic, self.partition, self.fields = (
            source.stream,
            source.topic,
            partition,
            source.fields,
        )
        self.at_end = False  # the partition has no more than what was handed over or waits in the buffer
        self._owner, self._commit = owner, commit
        self.buffer: deque[Payloads] = deque()
        self.waiting = self.bytes = 0  # readings in the buffer, and their bytes
        self.next: int | None = None  # the offset that should come next; None: whatever is first
        self.heard = 0.0  # when the partition was last heard of, monotonic seconds
        self.started = False
        self.paused = True
        self._fresh = True

    @property
    def caught_up(self) -> bool:
        # The end is told once, and maybe while messages from before it still wait.
        return self.at_end and not self.buffer

    def committed(self) -> tuple[Commit, bool]:
        return self._commit, False

    def start(self, offset: int, decoder: Decoder) -> None:
        # The assignment began at the commit; only a later start has to go back to it.
        self._owner.resume(self, None if self._fresh else offset)
        self.next = offset or None
        self.started, self._fresh = True, False

    def stop(self) -> None:
        self.started = self.at_end = False
        self._owner.pause(self)
        self.buffer.clear()
        self.waiting = self.bytes = 0

    def put(self, offsets: list[int], values: list[bytes], now: int) -> None:
        """Buffer readings that came together."""
        size = sum(map(len, values))
        self.at_end, self.heard = False, time.monotonic()
        self.next = offsets[-1] + 1
        self.waiting += len(offsets)
        self.bytes += size
        step = len(offsets) if size < READ_BYTES // 4 else 1
        for start in range(0, len(offsets), step):
            some = np.array(offsets[start : start + step], np.int64)
            self.buffer.append(Payloads(some, np.full(len(some), now), values[start : start + step]))

    def poll(self, limit: int, now: int) -> Payloads | None:
        parts: list[Payloads] = []
        count = size = 0
        while self.buffer and count < limit and size < READ_BYTES:
            part = self.buffer.popleft()
            if count + len(part.offsets) > limit:
                part, rest = part.split(limit - count)
                self.buffer.appendleft(rest)
            parts.append(part)
            count += len(part.offsets)
            size += part.size
        if not parts:
            return None
        self.waiting -= count
        self.bytes -= size
        return parts[0] if len(parts) == 1 else Payloads.concat(parts)

    @property
    def full(self) -> bool:
        """So much waits that the partition should pause."""
        return self.waiting > BUFFER or self.bytes > READ_BYTES

    @property
    def nearly_empty(self) -> bool:
        """So little waits that the partition should go on."""
        return self.waiting < BUFFER // 4 and self.bytes < READ_BYTES // 4

    def commit(self, commit: Commit, final: bool) -> Future[None]:
        return self._owner.commit(self, commit)

    def commit_is(self, commit: Commit) -> None:
        """The group has this commit now."""
        self._commit = commit


class KafkaTopic:
    """One subscription. `before_revoke` returns the last commit of a shard that is about to move; `lost` is
    told how many readings Kafka deleted before they were read.
    """

    def __init__(
        self,
        source: KafkaSource,
        settings: KafkaSettings,
        before_revoke: Callable[[str], Commit | None],
        lost: Callable[[int], None],
    ) -> None:
        self._source = source
        self._before_revoke, self._lost = before_revoke, lost
        self._full = False  # as much came at once as may
        self._shards: dict[int, KafkaShard] = {}
        self._making: dict[int, tuple[Commit, Future[None]]] = {}
        self._lock = threading.Lock()
        self._closing = False
        self._trouble: str | None = None  # of the last error, until something is heard again
        config = settings.client_config()
        if source.bootstrap is not None:
            config["bootstrap.servers"] = source.bootstrap
        self._consumer = Consumer(
            {
                **config,
                "group.id": source.group or f"tamis-edge.{source.stream}.{source.topic}",
                # A dead edge's partitions wait no longer than this for another.
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                # Not by the client itself: what was deleted unread has to be told and counted.
                "auto.offset.reset": "error",
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.partition.eof": True,
                "on_commit": self._on_commit,
                "error_cb": self._on_error,
            }
        )

    def start(self) -> None:
        self._consumer.subscribe([self._source.topic], self._on_assign, self._on_revoke, self._on_lost)

    def shards(self) -> list[KafkaShard]:
        now = time.time_ns() // 1000
        self._full = False
        try:
            messages = self._consumer.consume(AT_ONCE, timeout=0)
            self._full = len(messages) == AT_ONCE
            self._take(messages, now)
        except KafkaException as error:
            # The group could not say where its partitions stand: join it anew.
            _log.warning("joining the group again", topic=self._source.topic, error=str(error))
            self._shards.clear()
            self._consumer.unsubscribe()
            self.start()
        for shard in self._shards.values():
            if shard.started and not shard.paused and shard.full:
                self.pause(shard)
            elif shard.started and shard.paused and shard.nearly_empty:
                self.resume(shard, None)
            elif shard.started and not shard.paused and not shard.at_end and not shard.buffer:
                self._ask_for_end(shard)
        return list(self._shards.values())

    @property
    def behind(self) -> bool:
        return self._full or any(shard.buffer for shard in self._shards.values() if shard.started)

    def troubles(self) -> dict[str, str | None]:
        return {self._source.name: self._trouble}

    def check(self) -> None:
        """It has no thread of its own."""

    def refuse(self, full: bool) -> None:
        """The loop stops polling by itself, and full buffers pause their partitions."""

    def stop(self) -> None:
        for shard in self._shards.values():
            self.pause(shard)

    def close(self) -> None:
        self._closing = True
        self._consumer.close()

    # ---- for its shards

    def resume(self, shard: KafkaShard, offset: int | None) -> None:
        """Deliver the partition, from `offset` on where it is given."""
        at = TopicPartition(shard.topic, shard.partition)
        if offset is not None:
            self._consumer.seek(TopicPartition(shard.topic, shard.partition, offset))
        self._consumer.resume([at])
        shard.paused, shard.heard = False, time.monotonic()

    def pause(self, shard: KafkaShard) -> None:
        """Deliver nothing of the partition for now."""
        if not shard.paused:
            self._consumer.pause([TopicPartition(shard.topic, shard.partition)])
            shard.paused = True

    def commit(self, shard: KafkaShard, commit: Commit) -> Future[None]:
        """Commit an offset and its metadata for the group."""
        done: Future[None] = Future()
        if self._shards.get(shard.partition) is not shard:
            done.set_exception(UnavailableError("the partition has moved", where=shard.name))
            return done
        with self._lock:
            self._making[shard.partition] = (commit, done)
        try:
            self._consumer.commit(offsets=[_offset(shard, commit)], asynchronous=True)
        except KafkaException as error:
            self._settle(shard.partition, str(error))
        return done

    def _ask_for_end(self, shard: KafkaShard) -> None:
        """The end is told once only, and an error takes it back: going where one is has it told again, as
        soon as the broker answers.
        """
        if time.monotonic() - shard.heard > TELL_AGAIN:
            self._go_to(shard, OFFSET_BEGINNING if shard.next is None else shard.next)

    def _go_to(self, shard: KafkaShard, offset: int) -> None:
        shard.heard = time.monotonic()
        try:
            self._consumer.seek(TopicPartition(shard.topic, shard.partition, offset))
        except KafkaException as error:
            # Tried again: until then the partition counts as not read to its end.
            _log.debug("seeking failed", shard=shard.name, offset=offset, error=str(error))

    # ---- callbacks, all from within consume()

    def _take(self, messages: Sequence[Message], now: int) -> None:
        """Buffer messages by their partition; what is told between them is in its place."""
        groups: dict[int | None, list[Message]] = defaultdict(list)
        for message in messages:
            if message.error() is None:
                self._trouble = None
                groups[message.partition()].append(message)
            else:
                partition = message.partition()
                self._put(partition, groups.pop(partition, []), now)
                self._told(message)
        for partition, some in groups.items():
            self._put(partition, some, now)

    def _put(self, partition: int | None, messages: Sequence[Message], now: int) -> None:
        shard = None if partition is None else self._shards.get(partition)
        if shard is not None and shard.started and messages:
            offsets = [message.offset() or 0 for message in messages]
            shard.put(offsets, [message.value() or b"" for message in messages], now)

    def _told(self, message: Message) -> None:
        """What isn't a reading: the end of a partition, or an error."""
        error, partition = message.error(), message.partition()
        assert error is not None
        shard = None if partition is None else self._shards.get(partition)
        if error.code() == KafkaError._PARTITION_EOF:
            self._trouble = None
            if shard is not None:
                shard.at_end, shard.heard = True, time.monotonic()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and shard is not None:
            self._find_again(shard)
        else:
            self._trouble = str(error)
            _log.warning("reading a topic failed", topic=self._source.topic, error=str(error))

    def _find_again(self, shard: KafkaShard) -> None:
        """The partition doesn't have the offset that comes next: go on with the first that it has."""
        shard.at_end = False
        try:
            first, end = self._consumer.get_watermark_offsets(
                TopicPartition(shard.topic, shard.partition), timeout=PATIENCE
            )
        except KafkaException as error:
            _log.warning("can't ask where a partition begins", shard=shard.name, error=str(error))
            shard.heard = time.monotonic()
            return
        if shard.next is not None and shard.next < first:
            self._lost(first - shard.next)
            _log.error(
                "Kafka deleted readings before this edge had read them: its retention is too short",
                shard=shard.name,
                lost=first - shard.next,
                next=first,
            )
        else:
            _log.error(
                "a partition lacks the offset that was committed: was its topic made anew?",
                shard=shard.name,
                offset=shard.next,
                end=end,
                next=first,
            )
        shard.next, shard.heard = first, time.monotonic()
        # The client has given the partition up: seeking in it is an error.
        at = TopicPartition(shard.topic, shard.partition, first)
        self._consumer.incremental_unassign([at])
        self._consumer.incremental_assign([at])

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._trouble = None
        found = consumer.committed(partitions, timeout=PATIENCE) if partitions else []
        for at in found:
            if at.error is not None:
                raise KafkaException(at.error)
            commit = Commit.from_metadata(at.offset, at.metadata) if at.offset >= 0 else Commit()
            self._shards[at.partition] = KafkaShard(self, self._source, at.partition, commit)
            if at.offset == OFFSET_INVALID:
                at.offset = OFFSET_BEGINNING
        consumer.incremental_assign([TopicPartition(at.topic, at.partition, at.offset) for at in found])
        if found:
            # Read only once a plan lists the shard (`listed_only`).
            consumer.pause([TopicPartition(at.topic, at.partition) for at in found])
        _log.info("assigned", topic=self._source.topic, partitions=[at.partition for at in partitions])

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        offsets = []
        for at in partitions:
            shard = self._shards.pop(at.partition, None)
            last = self._before_revoke(shard.name) if shard else None
            # A stop has made its last commits already; a broker that is away would only delay it here.
            if shard is not None and last is not None and not self._closing:
                offsets.append(_offset(shard, last))
        if offsets:
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                # Nothing is lost: the next owner starts from the commit before.
                _log.warning("the last commit of moved partitions failed", error=str(error))
        consumer.incremental_unassign(partitions)
        _log.info("revoked", topic=self._source.topic, partitions=[at.partition for at in partitions])

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for at in partitions:
            self._shards.pop(at.partition, None)
        consumer.incremental_unassign(partitions)
        _log.warning("lost", topic=self._source.topic, partitions=[at.partition for at in partitions])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for at in partitions:
            fault = at.error or error
            self._settle(at.partition, str(fault) if fault else None)

    def _settle(self, partition: int, fault: str | None) -> None:
        with self._lock:
            making = self._making.pop(partition, None)
        if making is None:
            return
        commit, done = making
        if fault is not None:
            done.set_exception(UnavailableError(f"the commit failed: {fault}", where=self._source.topic))
            return
        shard = self._shards.get(partition)
        if shard is not None:
            shard.commit_is(commit)
        done.set_result(None)

    def _on_error(self, error: KafkaError) -> None:
        self._trouble = str(error)
        for shard in self._shards.values():
            shard.at_end = False
        _log.debug("Kafka", topic=self._source.topic, error=str(error))


def _offset(shard: KafkaShard, commit: Commit) -> TopicPartition:
    return TopicPartition(shard.topic, shard.partition, commit.done, commit.to_metadata())

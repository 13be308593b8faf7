"""The Kafka source: membership in the consumer group, and messages to the shards of its partitions.

The commit of a shard is the committed offset of the consumer group, with the commit's other fields as the
offset's metadata. So the commit moves with the partition.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tamis.errors import UnavailableError
from tamis.messaging.connection import NOT_AUTHORIZED, Cluster, Connection, kafka_at
from tamis.messaging.rights import SOURCE_GROUPS
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis_edge.core.commit import Commit
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.base import Source
from tamis_edge.sources.kafka.partitions import GroupCommits, PartitionEnds, offset_of, reposition
from tamis_edge.sources.kafka.schemas import FetchedSchemas
from tamis_edge.sources.kafka.shard import BUFFER, KafkaShard

_log = get_logger("edge.kafka")

PATIENCE = 10.0  # seconds that an answer of the group's coordinator may take
LOOK = 1.0  # seconds of a call that waits for it, before a look whether the edge stops
AT_ONCE = BUFFER // 2  # messages taken from the client at once
ASK_EVERY = 2.0  # seconds without a message of a partition before its end is asked for, and between questions
LOOK_FOR_BEGINNINGS = 30.0  # seconds between questions which readings Kafka has deleted
DENIED = 15.0  # seconds for which a missing right counts: the client repeats the error at least every ten
_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
# How much the client fetches before it is asked for.
PREFETCH = {
    # Of one response, over all partitions: one that takes longer than the client's timeout for requests
    # (60 s) never arrives, however often it is asked for. So a link may be as slow as 20 kB/s.
    "fetch.max.bytes": 2**20,
    # Messages of all partitions above which it fetches no more. It keeps 100,000 by default, each with about
    # 300 bytes beside its payload, and looks again only after a second, long after they are used up.
    "queued.min.messages": AT_ONCE,
    # Then it looks again after this time. With 5 ms an edge would wait for readings half of the time.
    "fetch.queue.backoff.ms": 1,
}


class KafkaTopic(Source):
    """One subscription. `before_revoke` returns the last commit of a shard that is about to move. `lost`
    gets the number of readings that Kafka deleted before they were read.
    """

    def __init__(
        self,
        source: KafkaSource,
        settings: KafkaSettings,
        before_revoke: Callable[[str], Commit | None],
        lost: Callable[[int], None],
        *,
        schemas: FetchedSchemas | None = None,
        clock: Callable[[], float] = time.monotonic,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`settings`: of the source's cluster. `schemas`: of the readings, where they aren't JSON. `stopping`
        tells whether the edge stops.
        """
        self._clock, self._schemas, self._stopping = clock, schemas, stopping
        self._source = source
        self._before_revoke, self._lost = before_revoke, lost
        self._full = False  # as much came at once as may
        self._shards: dict[int, KafkaShard] = {}
        self._commits = GroupCommits(source.topic)
        self._closing = False
        self._trouble: str | None = None  # of the last error, until something is heard again
        self._denied: tuple[float, str] | None = None  # when a right was missing last, and which
        self._stalled = False
        config = settings.client_config()
        self._bootstrap = str(config["bootstrap.servers"])
        self._connection = Connection(Cluster.of(config, settings.setting), tell=self._log_trouble)
        self._ends = PartitionEnds(config, source.topic)
        self._beginnings = PartitionEnds(config, source.topic, beginnings=True)
        self._look_at = 0.0  # when beginnings are asked for again
        self._ask_at = 0.0
        self._group = source.group or f"{SOURCE_GROUPS}{source.stream}.{source.topic}"
        self._consumer = Consumer(
            {
                **config,
                "group.id": self._group,
                # A dead edge's partitions wait no longer than this for another.
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                # The client must not skip readings that were deleted unread: they have to be counted.
                "auto.offset.reset": "error",
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.partition.eof": True,
                **PREFETCH,
                # By default the client asks again for a topic that it may not read after five minutes.
                "topic.metadata.refresh.interval.ms": 10_000,
                "on_commit": self._commits.on_commit,
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
            # The group's committed offsets could not be read: join it anew.
            self._join_again(str(error))
        if self._commits.unknown is not None:
            self._trouble = f"a commit failed, and may still be stored: {self._commits.unknown}"
            self._commits.unknown = None
            self._join_again(self._trouble)
        for shard in self._shards.values():
            if shard.started and not shard.paused and shard.full:
                self.pause(shard)
            elif shard.started and shard.paused and shard.nearly_empty:
                self.resume(shard, None)
        self._ask_for_ends()
        self._ask_for_beginnings()
        return list(self._shards.values())

    def _join_again(self, reason: str) -> None:
        _log.warning("joining the group again", topic=self._source.topic, reason=reason)
        self._shards.clear()
        self._consumer.unsubscribe()
        self.start()

    @property
    def behind(self) -> bool:
        return self._full or any(shard.buffer for shard in self._shards.values() if shard.started)

    def troubles(self) -> dict[str, str | None]:
        schema = None if self._schemas is None else self._schemas.trouble
        return {self._source.name: self._missing_right() or self._trouble or schema or self._stall()}

    def _missing_right(self) -> str | None:
        """The right that this edge lacks. The broker still answers other questions without it."""
        if self._denied is None or self._clock() - self._denied[0] > DENIED:
            return None
        return self._denied[1]

    def stop(self) -> None:
        for shard in self._shards.values():
            self.pause(shard)

    def close(self) -> None:
        self._closing = True
        if self._schemas is not None:
            self._schemas.close()
        self._ends.close()
        self._beginnings.close()
        self._consumer.close()

    # ---- for its shards

    def resume(self, shard: KafkaShard, offset: int | None) -> None:
        at = TopicPartition(shard.topic, shard.partition)
        if offset is not None:
            self._consumer.seek(TopicPartition(shard.topic, shard.partition, offset))
        self._consumer.resume([at])
        shard.paused, shard.heard = False, self._clock()

    def pause(self, shard: KafkaShard) -> None:
        if not shard.paused:
            self._consumer.pause([TopicPartition(shard.topic, shard.partition)])
            shard.paused = True

    def commit(self, shard: KafkaShard, commit: Commit) -> Future[None]:
        if self._shards.get(shard.partition) is not shard:
            done: Future[None] = Future()
            done.set_exception(UnavailableError("the partition has moved", where=shard.name))
            return done
        return self._commits.commit(self._consumer, shard, commit)

    # ---- ends of partitions

    def confirm_end(self) -> None:
        self._ends.forget()
        self._ask_at = 0.0

    def _ask_for_ends(self) -> None:
        """Ask for the ends of silent partitions, and take the answers.

        The client reports an end only once, and an error cancels the report. Over a slow link the first
        readings take long to arrive.
        """
        for partition, end in self._ends.answers().items():
            shard = self._shards.get(partition)
            if shard is not None and shard.started:
                shard.ends_at(end)
                if shard.at_end:
                    self._heard()
        now = self._clock()
        if now < self._ask_at:
            return
        asked = [
            shard
            for shard in self._shards.values()
            if shard.started and (shard.known_end is None or self._silent(shard, now))
        ]
        if not asked:
            return
        self._ask_at = now + ASK_EVERY
        for shard in asked:
            if shard.misplaced and self._silent(shard, now):
                self._reposition(shard)
        self._ends.ask(shard.partition for shard in asked)

    @staticmethod
    def _silent(shard: KafkaShard, now: float) -> bool:
        return not shard.paused and not shard.buffer and now - shard.heard > ASK_EVERY

    def _ask_for_beginnings(self) -> None:
        """Ask where partitions begin that have readings in partial aggregates, and take the answers."""
        for partition, first in self._beginnings.answers().items():
            if (shard := self._shards.get(partition)) is not None:
                shard.first = first
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_FOR_BEGINNINGS
            self._beginnings.ask(number for number, shard in self._shards.items() if shard.holds_back)

    def _stall(self) -> str | None:
        """A partition whose readings wait in Kafka and don't arrive; None if there is none."""
        found = None
        for shard in self._shards.values():
            if (seconds := shard.stalled) is not None:
                found = (
                    f"{shard.name}: {shard.behind} readings wait in Kafka, and none has come for "
                    f"{seconds:.0f} s; check the link to the broker"
                )
        if (found is not None) != self._stalled:
            self._stalled = found is not None
            if found is not None:
                _log.warning("no readings come", reason=found)
        return found

    def _heard(self) -> None:
        """The broker has answered."""
        self._trouble = None
        self._connection.answered()

    # ---- callbacks, all from within consume()

    def _take(self, messages: Sequence[Message], now: int) -> None:
        """Buffer messages by their partition, in order with the events between them."""
        groups: dict[int | None, list[Message]] = defaultdict(list)
        heard = False  # since the last event, which may be an error
        for message in messages:
            if message.error() is None:
                if not heard:
                    self._heard()
                    heard = True
                groups[message.partition()].append(message)
            else:
                partition = message.partition()
                self._put(partition, groups.pop(partition, []), now)
                self._handle_event(message)
                heard = False
        for partition, some in groups.items():
            self._put(partition, some, now)

    def _put(self, partition: int | None, messages: Sequence[Message], now: int) -> None:
        shard = None if partition is None else self._shards.get(partition)
        if shard is not None and shard.started and messages:
            offsets = [message.offset() or 0 for message in messages]
            shard.put(offsets, [message.value() or b"" for message in messages], now)

    def _handle_event(self, message: Message) -> None:
        """Handle an event that isn't a reading: the end of a partition, or an error."""
        error, partition = message.error(), message.partition()
        assert error is not None
        shard = None if partition is None else self._shards.get(partition)
        if error.code() == KafkaError._PARTITION_EOF:
            self._heard()
            if shard is not None and shard.started:
                shard.ended_at(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and shard is not None:
            shard.misplaced = True
            # Before a plan lists the shard its next offset isn't known, and readings would be dropped.
            if shard.started:
                self._reposition(shard)
        else:
            self._trouble = self._reason(error)
            if error.code() in NOT_AUTHORIZED:
                self._denied = self._clock(), self._trouble
            _log.warning("reading a topic failed", topic=self._source.topic, error=self._trouble)

    def _reason(self, error: KafkaError) -> str:
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return str(self._connection.not_authorized(f"no Read on group {self._group}"))
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return str(self._connection.not_authorized(f"no Read on topic {self._source.topic}"))
        if error.code() in _NO_TOPIC:
            return str(
                UnavailableError(
                    f"topic {self._source.topic} doesn't exist",
                    where=kafka_at(self._bootstrap),
                    hint=f"create it: kafka-topics.sh --bootstrap-server {self._bootstrap} --create --topic"
                    f" {self._source.topic} --partitions 1; or correct `topic` of the source",
                )
            )
        return str(self._connection.error(error))

    def _reposition(self, shard: KafkaShard) -> None:
        reposition(self._consumer, shard, self._lost)
        shard.heard = self._clock()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._heard()
        found = self._committed(consumer, partitions)
        if found is None:
            # Before it leaves the group, the client wants to have the partitions. Nothing is read from them.
            ends = [TopicPartition(at.topic, at.partition, OFFSET_END) for at in partitions]
            consumer.incremental_assign(ends)
            consumer.pause(ends)
            _log.info("partitions were assigned while the edge stops", topic=self._source.topic)
            return
        for at in found:
            if at.error is not None:
                raise KafkaException(at.error)
            commit = Commit.from_metadata(at.offset, at.metadata) if at.offset >= 0 else Commit()
            self._shards[at.partition] = KafkaShard(
                self, self._source, at.partition, commit, self._clock, schemas=self._schemas
            )
            if at.offset == OFFSET_INVALID:
                at.offset = OFFSET_BEGINNING
        consumer.incremental_assign([TopicPartition(at.topic, at.partition, at.offset) for at in found])
        if found:
            # Read only once a plan lists the shard (`listed_only`).
            consumer.pause([TopicPartition(at.topic, at.partition) for at in found])
        _log.info(
            "partitions were assigned",
            topic=self._source.topic,
            partitions=[at.partition for at in partitions],
        )

    def _committed(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition] | None:
        """The offsets that the group has committed; None if the edge stops before the coordinator answers. A
        consumer that closes gets no answer at all. Raises KafkaException.
        """
        until = self._clock() + PATIENCE
        while not (self._closing or self._stopping()):
            try:
                return consumer.committed(partitions, timeout=LOOK) if partitions else []
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT or self._clock() >= until:
                    raise
        return None

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        offsets = []
        for at in partitions:
            shard = self._shards.pop(at.partition, None)
            last = self._before_revoke(shard.name) if shard else None
            # A stop has made its last commits already; a broker that is away would only delay it here.
            if shard is not None and last is not None and not self._closing:
                offsets.append(offset_of(shard, last))
        if offsets:
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                # Nothing is lost: the next owner starts from the commit before.
                _log.warning("the last commit of moved partitions failed", error=str(error))
        consumer.incremental_unassign(partitions)
        _log.info(
            "partitions were revoked",
            topic=self._source.topic,
            partitions=[at.partition for at in partitions],
        )

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for at in partitions:
            self._shards.pop(at.partition, None)
        consumer.incremental_unassign(partitions)
        _log.warning(
            "partitions were lost", topic=self._source.topic, partitions=[at.partition for at in partitions]
        )

    def _on_error(self, error: KafkaError) -> None:
        self._connection(error)
        self._trouble = str(self._connection.trouble)
        self._ends.forget()
        for shard in self._shards.values():
            shard.at_end = False
        _log.debug("Kafka", topic=self._source.topic, error=str(error))

    def _log_trouble(self, trouble: UnavailableError) -> None:
        _log.warning("Kafka can't be reached", topic=self._source.topic, reason=str(trouble))

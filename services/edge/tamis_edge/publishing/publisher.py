"""Publisher: an idempotent producer for the records of all shards, with the spool while Kafka is away.

A delivery report for every record would cost more than sending the record. Therefore only the last record of
each bundle is reported. A partition confirms records in order, and the producer fails as a whole if a record
is missing (`enable.gapless.guarantee`). So a confirmed record confirms all records before it.

If Kafka refuses a record permanently, a new producer sends all unconfirmed records again, each in its own
request. The next refusal then tells which record is refused. That record becomes a dead letter
(`refused_records`).

If this edge lacks the right to write to a topic, a new producer sends all unconfirmed records again, in
order, until Kafka takes them. `resending` decides when records are sent again.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.errors import UnavailableError
from tamis.messaging.connection import Cluster, NotAuthorizedError, not_authorized
from tamis.messaging.dead_letters import Reason
from tamis.messaging.topics import DEAD_LETTERS, MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.records import ANY_PARTITION, Record
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles, WaitingLetters, letter_of, size_of
from tamis_edge.publishing.in_flight import (
    InFlight,
    PartitionQueue,
    Sender,
    Sent,
    ShardSender,
    sent,
)
from tamis_edge.publishing.resending import REFUSED, TOO_LARGE, Resending, Step
from tamis_edge.publishing.spooling import Spooling
from tamis_edge.storage.spool import Spool

_log = get_logger("edge.publisher")

QUEUE = 20_000  # records in flight before new ones wait: several round trips, and a bound of memory
QUEUE_BYTES = 64 * 2**20  # the same for records that are large
AWAY = 3.0  # seconds without any delivery while records are in flight, after which Kafka counts as away
DRAIN = 5_000  # records read from the spool at a time
METADATA_SECONDS = 5.0  # for an answer to a question about topics
REPORT_EVERY = 500  # records of a partition that are reported together
# Bytes that Kafka's own format adds to a record.
OVERHEAD = 512


class _Reports:
    """The owner of the edge's own reports among the records in flight."""

    def safe(self, *tokens: int) -> None:
        """Nothing to do: the next report replaces this one."""

    def carries_tuple(self, token: int) -> bool:
        return False


class Publisher:
    """Sends records. It belongs to one thread; delivery reports arrive in `poll`."""

    def __init__(
        self,
        settings: KafkaSettings,
        edge: str,
        spool: Spool,
        files: DeadLetterFiles,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._edge, self._metrics = settings, edge, metrics
        self._clock = clock
        self._last_delivery = clock()
        self._in_flight = InFlight()
        self._spooling, self._reports = Spooling(spool, clock), _Reports()
        self._letters = WaitingLetters(files, clock, partial(self._count_refused, "file"))
        self._was_away = False
        self._limits: dict[str, int] = {}  # by topic, bytes of the smallest record refused for its size
        self._resending = Resending(clock)
        self._producer = self._connect()

    def _connect(self) -> Producer:
        alone = (
            {"batch.num.messages": 1} if self._resending.one_by_one else {"enable.gapless.guarantee": True}
        )
        return Producer(
            {
                **self._settings.client_config(),
                **alone,
                "client.id": f"tamis-edge-{self._edge}",
                "enable.idempotence": True,
                # Queued records must never expire: the protocol relies on order without gaps.
                "message.timeout.ms": 0,
                "message.max.bytes": MAX_RECORD_BYTES,
                "linger.ms": 5,
                "queue.buffering.max.messages": 4 * QUEUE,
                "reconnect.backoff.max.ms": 2_000,
                "partitioner": "murmur2_random",
                "error_cb": self._on_error,
            }
        )

    @property
    def denied(self) -> NotAuthorizedError | None:
        """The right that this edge lacks; None once Kafka takes records again."""
        return self._resending.denied

    @property
    def fault(self) -> str | None:
        """The error after which this edge can't continue."""
        return self._resending.fault

    @property
    def away(self) -> bool:
        """True if Kafka doesn't confirm records."""
        silent = self._in_flight.records > 0 and self._clock() - self._last_delivery > AWAY
        return silent or self.denied is not None

    @property
    def room(self) -> bool:
        """True if shards may send more. False while dead letters wait for the disk, because otherwise their
        number would grow without limit.
        """
        return self._fits and not self._letters

    @property
    def _fits(self) -> bool:
        in_flight = self._in_flight
        return in_flight.records < QUEUE and in_flight.bytes < QUEUE_BYTES and not self._resending.waits

    @property
    def spooling(self) -> bool:
        """True if records of shards that can't move to another edge go to the spool."""
        full = self._in_flight.records >= QUEUE or self._in_flight.bytes >= QUEUE_BYTES
        return self._spooling.waiting or self.away or full

    @property
    def stuck(self) -> bool:
        """True if records of shards that can't move to another edge can go neither to Kafka nor to disk."""
        return self._spooling.error is not None and self.spooling

    @property
    def in_flight(self) -> int:
        """The number of records that Kafka has not confirmed yet."""
        return self._in_flight.records

    def send(self, sender: ShardSender, movable: bool) -> None:
        """Take records of a shard, in order, while there is room.

        A shard that can move to another edge keeps its records until they are published, because the spool
        doesn't move with it.
        """
        if not movable and self.spooling:
            self._spooling.append(sender)
        elif sender.out and self.room:
            self._post(sender, self._fitting(sender.out))

    @property
    def ready(self) -> bool:
        """True if `report` would send a report now."""
        return self._fits and not self.away

    def report(self, topic: str, key: bytes, value: bytes) -> bool:
        """Send a report of the edge. It may be lost if the edge fails. While Kafka is away it is not sent,
        because it would be outdated on arrival.
        """
        if not self.ready:
            return False
        arrival = time.time_ns() // 1_000_000
        self._post(self._reports, [Record(0, topic, ANY_PARTITION, key, value, arrival)])
        return True

    def poll(self) -> None:
        """Take delivery reports, and send records of the spool."""
        self._poll_reports(0)
        self._recover()
        self._spooling.delete_delivered()
        self._letters.keep()
        if self._in_flight.records == 0:
            self._last_delivery = self._clock()
        if not self.spooling:
            self._spooling.idle()
        if self.away != self._was_away:
            self._was_away = not self._was_away
            if self._was_away:
                _log.warning(
                    "Kafka takes nothing; records of shards that can't move to another edge are spooled"
                )
            else:
                _log.info("Kafka is back", spooled=self._spooling.records)
        # Waiting dead letters don't stop the spool: they may wait for the room that it frees.
        few = self._letters.bytes < QUEUE_BYTES
        while (
            few
            and self._spooling.waiting
            and not self.away
            and self._fits
            and self._in_flight.records < QUEUE - DRAIN
        ):
            self._post(self._spooling, self._spooling.take(DRAIN, QUEUE_BYTES - self._in_flight.bytes))

    def flush(self, seconds: float) -> int:
        """Wait for the records in flight; returns how many are left."""
        until = self._clock() + seconds
        while self._in_flight.records and self._clock() < until and self.fault is None:
            self._poll_reports(0.05)
            self._recover()
        self._spooling.delete_delivered()
        return self._in_flight.records

    def close(self) -> None:
        """Discard the records in flight and close the connection, which no other thread may use any more.
        The readings of these records aren't done, so they come again.
        """
        self._producer.purge(in_queue=True, in_flight=True, blocking=True)
        self._poll_reports(0)
        self._producer.close()

    def partition_counts(self) -> Mapping[str, int]:
        """The partition counts of all topics, from one request; empty if Kafka doesn't answer. Any thread may
        call it.
        """
        try:
            topics = self._producer.list_topics(timeout=METADATA_SECONDS).topics
        except KafkaException:
            return {}
        return {name: len(found.partitions) for name, found in topics.items() if found.error is None}

    # ---- sending

    def _fitting(self, out: deque[Record]) -> list[Record]:
        """Take as many records from `out` as there is room for, at least one."""
        count = min(len(out), QUEUE - self._in_flight.records)
        room = QUEUE_BYTES - self._in_flight.bytes
        records = [out.popleft() for _ in range(count)]
        sizes = list(accumulate([len(record.value) for record in records]))
        fit = max(1, bisect_right(sizes, room))
        out.extendleft(reversed(records[fit:]))
        return records[:fit]

    def _post(self, sender: Sender, records: Sequence[Record]) -> None:
        """Hand records to the producer, in order; there is room for them."""
        # A tuple's key is in its value too: no record is much larger than twice its value.
        largest = max([len(record.value) for record in records])
        if 2 * largest + OVERHEAD >= min(self._limits.values(), default=MAX_RECORD_BYTES - OVERHEAD):
            records = [record for record in records if not self._too_large(sender, record)]
        places: dict[tuple[str, int], list[Record]] = defaultdict(list)
        for record in records:
            places[record.topic, record.partition].append(record)
        for (topic, partition), some in places.items():
            if partition == ANY_PARTITION:
                # One by one: their output partition isn't known here.
                for record in some:
                    self._post_alone(sender, record)
                continue
            for start in range(0, len(some), REPORT_EVERY):
                self._post_bundle(topic, partition, sent(sender, some[start : start + REPORT_EVERY]))

    def _post_bundle(self, topic: str, partition: int, bundle: Sent) -> None:
        """Hand over records of one partition, of which the last is reported."""
        produce = self._producer.produce
        report = partial(self._bundle_delivered, *self._in_flight.post(topic, partition, bundle))
        last = len(bundle.records) - 1
        try:
            # By position: names cost the client as much as the record.
            for i, (_, _, _, key, value, arrival, _) in enumerate(bundle.records):
                # The report's place is the fifth: in the sixth, its other name's, it is never called.
                produce(topic, value, key, partition, report if i == last else None, None, arrival)
        except (KafkaException, BufferError) as error:
            self._not_queued(error, topic)

    def _post_alone(self, sender: Sender, record: Record) -> None:
        """Hand over a record that is reported separately."""
        if self._too_large(sender, record):
            return
        number = self._in_flight.post_single(sent(sender, [record]))
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=partial(self._single_delivered, number),
                timestamp=record.arrival,
                headers=record.headers or [],  # type: ignore[arg-type]
            )
        except (KafkaException, BufferError) as error:
            self._not_queued(error, record.topic)

    def _too_large(self, sender: Sender, record: Record) -> bool:
        """True if Kafka has already refused records of this size. The record is then refused at once."""
        size = size_of(record)
        limit = self._limits.get(record.topic, MAX_RECORD_BYTES - OVERHEAD)
        if size < limit:
            return False
        self._refuse(
            sender, record, Reason.TOO_LARGE, f"{size} bytes; {record.topic} accepts less than {limit}"
        )
        return True

    # ---- reports

    def _poll_reports(self, seconds: float) -> None:
        """Take the delivery reports that have arrived, after waiting for the first."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # the producer's end, which its other reports follow
            self._failed(error.args[0], None)

    def _bundle_delivered(
        self, queue: PartitionQueue, upto: int, error: KafkaError | None, message: Message | None
    ) -> None:
        if error is not None:
            self._failed(error, message.topic() if message else None)
            return
        if self._resending.lacks_right:
            return  # a record before it may have been refused: both are sent again
        self._delivered()
        for bundle in self._in_flight.settle(queue, upto):
            bundle.sender.safe(*[record.token for record in bundle.records])

    def _single_delivered(self, number: int, error: KafkaError | None, message: Message | None) -> None:
        if error is not None and not (self._resending.one_by_one and error.code() in REFUSED):
            self._failed(error, message.topic() if message else None)
            return
        if self._resending.lacks_right:
            return  # a record before it may have been refused: both are sent again
        self._delivered()
        single = self._in_flight.settle_single(number)
        if single is None:
            return
        sender, (record,), _ = single
        if error is None:
            sender.safe(record.token)
            return
        topic, reason = record.topic, Reason.REFUSED
        if error.code() in TOO_LARGE:
            reason = Reason.TOO_LARGE
            self._limits[topic] = min(self._limits.get(topic, MAX_RECORD_BYTES), size_of(record))
        self._refuse(sender, record, reason, f"Kafka refuses it for {topic}: {error.str()}")

    def _failed(self, error: KafkaError, topic: str | None) -> None:
        def denied() -> NotAuthorizedError:
            cluster = Cluster.of(self._settings.client_config())
            return not_authorized(cluster, f"no Write on topic {topic or 'of a record'}")

        if self._resending.failed(error, topic, denied):
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)

    def _delivered(self) -> None:
        self._last_delivery = self._clock()
        self._resending.delivered()

    def _not_queued(self, error: KafkaException | BufferError, topic: str) -> None:
        if isinstance(error, BufferError):
            # The edge's own limit is lower; sending only some of the records would break the order.
            raise UnavailableError(
                "the Kafka client's queue is full, although its limit is above the edge's own",
                hint="this is a fault of Tamis; please report it",
            )
        self._failed(error.args[0], topic)

    def _on_error(self, error: KafkaError) -> None:
        _log.debug("Kafka", error=str(error))

    # ---- records that Kafka refuses

    def _recover(self) -> None:
        """Send the records in flight again if it is time."""
        step = self._resending.next_step(self._in_flight.records)
        if step is Step.NOTHING:
            return
        self._producer.purge(in_queue=True, in_flight=True, blocking=True)
        self._poll_reports(0)
        if self._resending.lacks_right:
            return  # no single record is to blame
        left = self._in_flight.take_all()
        self._resending.reconnected(step)
        self._producer = self._connect()
        self._last_delivery = self._clock()
        for sender, record in left:
            # A report of the edge is soon replaced by the next one, and must not hold up the readings.
            if sender is not self._reports or self.denied is None:
                self._post_alone(sender, record)

    def _refuse(self, sender: Sender, record: Record, reason: Reason, why: str) -> None:
        """Make a dead letter of a reading's record; if it is one already, keep it in a file."""
        is_mark = record.key is None and record.topic != DEAD_LETTERS
        if is_mark or not sender.carries_tuple(record.token):
            # Without progress, and without reports of shed tuples, the fleet would stand still without a
            # reason.
            self._resending.fault = f"{record.topic}: {why}"
            return
        if record.topic == DEAD_LETTERS:
            self._letters.add(sender, record, why)
        else:
            _log.error(
                "Kafka refuses a tuple permanently: it becomes a dead letter", topic=record.topic, reason=why
            )
            self._metrics.inc("tamis_dead_letters_total", service="edge", reason=reason.value)
            self._post_alone(sender, letter_of(record, reason, why, self._edge))
            self._count_refused("dead_letters")

    def _count_refused(self, place: str) -> None:
        self._metrics.inc("tamis_edge_refused_records_total", edge=self._edge, place=place)

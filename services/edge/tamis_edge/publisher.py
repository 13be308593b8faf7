"""The way to Kafka: an idempotent producer, and the spool in front of it while Kafka is away.

A report of delivery for every record would cost more than sending it. Here few records of a partition are
reported, the last of each bundle among them: a partition confirms in order, and the producer is told to fail
as a whole rather than leave a gap (`enable.gapless.guarantee`), so a record that is confirmed confirms all
before it.

When Kafka refuses a record for good, that producer is given up, and another sends all that is not confirmed
again, each record in a request of its own: now the refusal names the culprit, which is set aside (`aside`).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.errors import UnavailableError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.topics import DEAD_LETTERS, MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.aside import LetterFiles, letter_of, size_of
from tamis_edge.core.records import ANY_PARTITION, Record
from tamis_edge.on_way import Lane, OnWay, Sender, Sent, ShardSender, sent
from tamis_edge.spool import Spool

_log = get_logger("edge.publisher")

QUEUE = 50_000  # records on their way before new ones wait: some seconds' worth, and a bound of memory
QUEUE_BYTES = 64 * 2**20  # the same for records that are large
AWAY = 3.0  # seconds without any delivery while records are on their way, after which Kafka counts as away
DRAIN = 5_000  # records read from the spool at a time
REPORT_EVERY = 500  # records of a partition that are reported together
# What Kafka adds to a record in its own format.
OVERHEAD = 512

# A record that is refused so will be refused whenever it comes again.
_REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
}
_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
# Some record was refused, and the others of its request or of the producer fail with it.
_OTHERS_FAULT = {
    KafkaError._GAPLESS_GUARANTEE,
    KafkaError._FATAL,
    KafkaError._INVALID_DIFFERENT_RECORD,
}


@dataclass
class _Spooled:
    """Owns what comes from the spool, whose records are all of readings."""

    delivered: list[int] = field(default_factory=list)

    def safe(self, token: int) -> None:
        self.delivered.append(token)

    def carries_tuple(self, token: int) -> bool:
        return True


class _Own:
    """Owns what the edge says of itself."""

    def safe(self, token: int) -> None:
        """It is outdated soon anyway."""

    def carries_tuple(self, token: int) -> bool:
        return False


class Publisher:
    """Belongs to one thread; delivery reports arrive in `poll`."""

    def __init__(
        self,
        settings: KafkaSettings,
        edge: str,
        spool: Spool,
        files: LetterFiles,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._edge = settings, edge
        self._spool, self._files, self._metrics = spool, files, metrics
        self._clock = clock
        self._last_delivery = clock()
        self._on_way = OnWay()
        self._spooled, self._own = _Spooled(), _Own()
        self._was_away = False
        self._one_by_one = False  # until what was on its way beside a refused record is in Kafka
        self._broken = False
        self._limits: dict[str, int] = {}  # by topic, bytes of the smallest record refused for its size
        self.fault: str | None = None
        self._producer = self._connect()

    def _connect(self) -> Producer:
        alone = {"batch.num.messages": 1} if self._one_by_one else {"enable.gapless.guarantee": True}
        return Producer(
            {
                **self._settings.client_config(),
                **alone,
                "client.id": f"tamis-edge-{self._edge}",
                "enable.idempotence": True,
                # What is queued must never expire: the protocol counts on order without gaps.
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
    def away(self) -> bool:
        """Kafka doesn't take what it is sent."""
        return self._on_way.records > 0 and self._clock() - self._last_delivery > AWAY

    @property
    def room(self) -> bool:
        """More may be sent."""
        on_way = self._on_way
        return on_way.records < QUEUE and on_way.bytes < QUEUE_BYTES and not self._one_by_one

    @property
    def spooling(self) -> bool:
        """Records of shards that are bound to this edge go to the disk."""
        full = self._on_way.records >= QUEUE or self._on_way.bytes >= QUEUE_BYTES
        return self._spool.waiting or self.away or full

    @property
    def on_way(self) -> int:
        """Records that Kafka has not confirmed yet."""
        return self._on_way.records

    def send(self, sender: ShardSender, movable: bool) -> None:
        """Take what a shard has to send, in order, as far as there is room for it.

        A shard that can move keeps its records until they are published: spooled ones would stay behind when
        it moves.
        """
        if not movable and self.spooling:
            self._to_spool(sender)
        elif sender.out and self.room:
            self._post(sender, self._fitting(sender.out))

    @property
    def ready(self) -> bool:
        """Whether a record of the edge's own would be sent now."""
        return self.room and not self.away

    def say(self, topic: str, key: bytes, value: bytes) -> bool:
        """Send a record of the edge's own, which may be lost with the edge. Not while Kafka is away: it will
        be outdated.
        """
        if not self.ready:
            return False
        arrival = time.time_ns() // 1_000_000
        self._post(self._own, [Record(0, topic, ANY_PARTITION, key, value, arrival)])
        return True

    def poll(self) -> None:
        """Deliver reports, and send on what the spool holds."""
        self._hear(0)
        self._mend()
        self._forget_spooled()
        if self._on_way.records == 0:
            self._last_delivery = self._clock()
        if self.away != self._was_away:
            self._was_away = not self._was_away
            if self._was_away:
                _log.warning("Kafka takes nothing; records of shards that can't move go to the spool")
            else:
                _log.info("Kafka is back", spooled=self._spool.records)
        while self._spool.waiting and not self.away and self.room and self._on_way.records < QUEUE - DRAIN:
            self._post(self._spooled, self._spool.take(DRAIN, QUEUE_BYTES - self._on_way.bytes))

    def flush(self, seconds: float) -> int:
        """Wait for what is on its way; returns how many records still are."""
        until = self._clock() + seconds
        while self._on_way.records and self._clock() < until and self.fault is None:
            self._hear(0.05)
            self._mend()
        self._forget_spooled()
        return self._on_way.records

    def close(self) -> None:
        """Give up what is on its way: it is not done with, and comes again."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._hear(0)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None where it doesn't exist or Kafka can't be asked. Any thread
        may ask.
        """
        try:
            found = self._producer.list_topics(topic, timeout=5).topics[topic]
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    # ---- sending

    def _fitting(self, out: deque[Record]) -> list[Record]:
        """Take from `out` what there is room for, one record at the least."""
        count = min(len(out), QUEUE - self._on_way.records)
        room = QUEUE_BYTES - self._on_way.bytes
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
                # Apart: which lane it takes isn't known here.
                for record in some:
                    self._post_alone(sender, record)
                continue
            for start in range(0, len(some), REPORT_EVERY):
                self._post_bundle(topic, partition, sent(sender, some[start : start + REPORT_EVERY]))

    def _post_bundle(self, topic: str, partition: int, bundle: Sent) -> None:
        """Hand over records of one partition, whose last is reported."""
        produce = self._producer.produce
        report = partial(self._reached, *self._on_way.post(topic, partition, bundle))
        last = len(bundle.records) - 1
        try:
            # By position: names cost the client as much as the record.
            for i, (_, _, _, key, value, arrival, _) in enumerate(bundle.records):
                # The report's place is the fifth: in the sixth, its other name's, it is never called.
                produce(topic, value, key, partition, report if i == last else None, None, arrival)
        except (KafkaException, BufferError) as error:
            self._not_taken(error)

    def _post_alone(self, sender: Sender, record: Record) -> None:
        """Hand a record to the producer that is judged by itself."""
        if self._too_large(sender, record):
            return
        number = self._on_way.post_single(sent(sender, [record]))
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=partial(self._judged, number),
                timestamp=record.arrival,
                headers=record.headers or [],  # type: ignore[arg-type]
            )
        except (KafkaException, BufferError) as error:
            self._not_taken(error)

    def _too_large(self, sender: Sender, record: Record) -> bool:
        """Whether Kafka is known to refuse the record for its size; then it is set aside."""
        size = size_of(record)
        limit = self._limits.get(record.topic, MAX_RECORD_BYTES - OVERHEAD)
        if size < limit:
            return False
        self._set_aside(
            sender, record, Reason.TOO_LARGE, f"{size} bytes; {record.topic} takes less than {limit}"
        )
        return True

    def _to_spool(self, sender: ShardSender) -> None:
        records, places = [], []
        while sender.out:
            record = sender.out.popleft()
            if sender.carries_tuple(record.token):
                records.append(record)
                places.append(sender.place(record.token))
            else:
                # Progress goes behind the tuples that it covers, and these are not on their way yet.
                sender.retract(record.token)
        if records:
            self._spool.append(sender.shard, records, places)
            for record in records:
                sender.safe(record.token)

    def _forget_spooled(self) -> None:
        if self._spooled.delivered:
            self._spool.delivered(self._spooled.delivered)
            self._spooled.delivered = []

    # ---- reports

    def _hear(self, seconds: float) -> None:
        """Have the reports come in that are there, after waiting for the first."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # the producer's end, which its other reports follow
            self._failed(error.args[0], None)

    def _reached(self, lane: Lane, upto: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed(error, message)
            return
        self._last_delivery = self._clock()
        for bundle in self._on_way.settle(lane, upto):
            safe = bundle.sender.safe
            for record in bundle.records:
                safe(record.token)

    def _judged(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None and not (self._one_by_one and error.code() in _REFUSALS):
            self._failed(error, message)
            return
        self._last_delivery = self._clock()
        single = self._on_way.settle_single(number)
        if single is None:
            return
        sender, (record,), _ = single
        if error is None:
            sender.safe(record.token)
            return
        topic, reason = record.topic, Reason.REFUSED
        if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE):
            reason = Reason.TOO_LARGE
            self._limits[topic] = min(self._limits.get(topic, MAX_RECORD_BYTES), size_of(record))
        self._set_aside(sender, record, reason, f"Kafka refuses it for {topic}: {error.str()}")

    def _failed(self, error: KafkaError, message: Message | None) -> None:
        code = error.code()
        if code in _PURGED:
            return
        if (code in _REFUSALS or code in _OTHERS_FAULT) and not self._one_by_one:
            self._broken = True
        else:
            self.fault = f"{message.topic() if message else 'a topic'}: {error}"

    def _not_taken(self, error: KafkaException | BufferError) -> None:
        if isinstance(error, BufferError):
            # With the room that was looked for the queue takes all; a refusal would break the order.
            raise UnavailableError("the producer's queue is full", hint="raise its limit of bytes")
        self._failed(error.args[0], None)

    def _on_error(self, error: KafkaError) -> None:
        _log.debug("Kafka", error=str(error))

    # ---- what Kafka refuses

    def _mend(self) -> None:
        """Go over to sending one by one after a refusal, and back when that is done."""
        if self.fault is not None:
            return
        if self._broken:
            _log.warning("Kafka refuses a record: looking which", on_way=self._on_way.records)
            self._reconnect(one_by_one=True)
        elif self._one_by_one and self._on_way.records == 0:
            self._reconnect(one_by_one=False)

    def _reconnect(self, one_by_one: bool) -> None:
        self._producer.purge(in_queue=True, in_flight=True, blocking=True)
        self._hear(0)
        left = self._on_way.take_all()
        self._one_by_one, self._broken = one_by_one, False
        self._producer = self._connect()
        self._last_delivery = self._clock()
        for sender, record in left:
            self._post_alone(sender, record)

    def _set_aside(self, sender: Sender, record: Record, reason: Reason, why: str) -> None:
        """Keep a reading's record elsewhere: among the dead letters, or in a file if it is one already."""
        tells = record.key is None and record.topic != DEAD_LETTERS
        if tells or not sender.carries_tuple(record.token):
            # Without progress, or word of what was shed, the fleet would stand still and nobody know why.
            self.fault = f"{record.topic}: {why}"
            return
        if record.topic == DEAD_LETTERS:
            place, path = "file", self._files.keep(record)
            _log.error("a dead letter doesn't fit into Kafka, kept in a file", path=str(path), reason=why)
            sender.safe(record.token)
        else:
            place = "dead_letters"
            _log.error("Kafka refuses a tuple for good, set aside", topic=record.topic, reason=why)
            self._metrics.inc("tamis_dead_letters_total", service="edge", reason=reason.value)
            self._post_alone(sender, letter_of(record, reason, why))
        # Once it is there: who reads this may look for it.
        self._metrics.inc("tamis_edge_refused_records_total", edge=self._edge, place=place)

"""The registry's Kafka: one transactional writer, and readers of the topics that hold its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.errors import InputError, RefusedError, UnavailableError
from tamis.messaging.connection import Connection
from tamis.messaging.records import final_envelope
from tamis.messaging.rights import TRANSACTIONAL_ID
from tamis.messaging.schemas.tuple_encoding import encode_alone
from tamis.messaging.silences import HELD, encode
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import (
    ACKS,
    FRONTIERS,
    HEARTBEATS,
    MAX_RECORD_BYTES,
    PLAN_KEY,
    PLANS,
    SILENCES,
    SKETCHES,
    STATEMENTS,
)
from tamis.plan.document import LARGEST, PlanDocument
from tamis.settings import KafkaSettings
from tamis_registry.core.plan.change import Final
from tamis_registry.core.silences import Kept
from tamis_registry.core.state.records import FLEET, damage, owned_by, owner
from tamis_registry.kafka.plan_parts import PlanParts
from tamis_registry.kafka.topic_admin import TopicAdmin
from tamis_registry.plans import History, Origin, claimed, whole_version

TRANSACTION_SECONDS = 10.0
# A plan says the same of thousands of queries: a fifteenth is left of it.
COMPRESSION = "zstd"
AT_ONCE = 1_000  # reports that are taken between two looks at jobs
OVERHEAD = 4096  # bytes of a record besides its value, and more

# The alerts service writes these records into the topic of silences. All others there are the registry's own.
_HELD = f"{HELD}/".encode()

Delivered = Callable[[KafkaError | None, Message], None]

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}


class FencedError(RefusedError):
    """Another registry has taken over; this one must not write any more."""

    def __init__(self) -> None:
        super().__init__(
            "another registry has taken over",
            where=f"transactional id {TRANSACTIONAL_ID}",
            hint="run one registry per Kafka cluster; this one stops",
        )


class LostTransactionError(UnavailableError):
    """The broker ended the transaction: another registry has begun, or the transaction took too long.

    Only the `owner` in `tamis.statements` tells which of the two it was.
    """

    def __init__(self) -> None:
        super().__init__(
            "the transaction was ended by the broker", where=f"transactional id {TRANSACTIONAL_ID}"
        )


@dataclass(frozen=True)
class Unreadable:
    """A record that is not of the kind of its topic, with the reason."""

    record: Record
    why: str


@dataclass(frozen=True)
class _Sent:
    """A record to write. Without a value it deletes its key."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]] = field(default_factory=list)


@dataclass
class Recovered:
    """The content of the topics at a start.

    `plans`: those of all partitions, committed or not. `unreadable`: other records of that topic. `damaged`:
    records of `tamis.statements` that no release has written; earlier records of their keys count instead.
    """

    statements: dict[bytes, bytes] = field(default_factory=dict)
    acks: dict[bytes, bytes] = field(default_factory=dict)
    frontiers: dict[bytes, bytes] = field(default_factory=dict)
    sketches: dict[bytes, bytes] = field(default_factory=dict)
    silences: dict[bytes, bytes] = field(default_factory=dict)
    heartbeats: dict[bytes, bytes] = field(default_factory=dict)
    plans: History = field(default_factory=History)
    unreadable: list[Unreadable] = field(default_factory=list)
    damaged: dict[bytes, Unreadable] = field(default_factory=dict)


class Store:
    """The topics of the registry. It is opened once for each attempt.

    After any failure it is closed and another one is opened, as after a restart.
    """

    def __init__(self, kafka: KafkaSettings, owner: str) -> None:
        self._kafka = kafka
        self._owner = owner
        self._compressed = (0, 0)  # what was made by a plan that was compressed, and its size then
        config = kafka.client_config()
        self.topics = TopicAdmin(config)
        self.topics.ensure_single()
        self.behind = False  # as many reports came at once as may: there are probably more
        self._reader = TopicReader(config, (STATEMENTS, ACKS, FRONTIERS, SKETCHES, SILENCES, HEARTBEATS))
        self._connection = Connection.of(kafka.client_config())
        producer = kafka.client_config(
            transactional_id=TRANSACTIONAL_ID,
            transaction_timeout_ms=int(TRANSACTION_SECONDS * 1000),
            # Of what is sent; the broker limits what is left of it once it is compressed.
            message_max_bytes=LARGEST + OVERHEAD,
            compression_type=COMPRESSION,
            linger_ms=0,
        )
        self._producer = Producer({**producer, "error_cb": self._connection})
        self._parts = PlanParts(kafka, self.topics)

    def take_over(self, mine: bool) -> Recovered:
        """Fence any earlier writer, and read everything.

        `mine`: this process was the writer before and wants to be it again. If another process has become the
        writer meanwhile, that one remains the writer (FencedError).
        """
        if mine:
            self._check_owner(self._snapshot())
        self._call(self._producer.init_transactions, TRANSACTION_SECONDS)
        # Read only now: whatever the one before was writing is either there or aborted.
        found = self._snapshot()
        if mine:
            self._check_owner(found)
        fleet = found.statements.get(FLEET)
        if fleet is not None and self._is_foreign(fleet):
            # At once, since planning may take long: the one before looks after some seconds whether it was
            # another process that fenced it.
            found.statements[FLEET] = owned_by(fleet, self._owner)
            self.write_statements({FLEET: found.statements[FLEET]})
        return found

    def read_plans(self, into: Recovered) -> None:
        """The newest plan versions in any partition, including aborted ones, because a service may have read
        them.

        Records that are not plans are returned separately. A version that such a record contains counts too,
        so that no version is used twice.
        """
        with TopicReader(self._kafka.client_config(), (PLANS,), committed=False) as reader:
            for record in reader.snapshot():
                if record.value is None:
                    continue
                try:
                    into.plans.add(whole_version(record.value), record.value, Origin.of(record))
                except InputError as error:
                    into.plans.claim(claimed(record.value))
                    into.unreadable.append(Unreadable(record, error.what))

    def remove(self, unreadable: Iterable[Unreadable]) -> None:
        """Let compaction remove records of the plan topic that are not plans.

        The next plan replaces those that have the key of plans.
        """
        keys = {(one.record.partition, one.record.key) for one in unreadable if one.record.key != PLAN_KEY}
        if keys:
            self._transaction(_Sent(PLANS, partition, key, None) for partition, key in sorted(keys, key=str))

    def write_statements(self, changed: Mapping[bytes, bytes | None]) -> None:
        """One transaction on `tamis.statements`."""
        self._transaction(_Sent(STATEMENTS, 0, key, value) for key, value in changed.items())

    def write_silences(self, changed: Mapping[bytes, Kept | None]) -> None:
        """One transaction on `tamis.silences`."""
        self._transaction(
            _Sent(SILENCES, 0, key, None if kept is None else encode(kept)) for key, kept in changed.items()
        )

    def write_plan(self, plan: bytes, origin: Origin, partitions: int, finals: Iterable[Final]) -> None:
        """The plan in every partition and the final records, as one transaction, and behind it the parts."""
        ends = [0] * partitions

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None and message.topic() == PLANS:
                # The marker of the transaction's end comes behind the record.
                ends[message.partition() or 0] = (message.offset() or 0) + 2

        records = [
            _Sent(PLANS, partition, PLAN_KEY, plan, [origin.header]) for partition in range(partitions)
        ]
        for final in finals:
            value = encode_alone(final.schema, final_envelope(final.shard, final.version))
            records += [_Sent(final.topic, partition, None, value) for partition in range(partitions)]
        self._transaction(records, delivered)
        self._parts.write(plan, ends)

    def check_plan(self, plan: PlanDocument) -> None:
        """Raises InputError if a plan is larger than a broker accepts."""
        if plan.size <= MAX_RECORD_BYTES // 2:
            return
        made, size = self._compressed
        # To compress thousands of queries takes longer than to plan one: what is new counts in full first.
        if plan.encoded < made or size + plan.encoded - made > MAX_RECORD_BYTES * 3 // 4:
            size = len(pa.compress(plan.json, codec=COMPRESSION, asbytes=True))
            self._compressed = plan.encoded, size
            if size > MAX_RECORD_BYTES - OVERHEAD:
                raise InputError(
                    f"the plan has {size} bytes, compressed; at most {MAX_RECORD_BYTES - OVERHEAD} fit",
                    where="plan",
                    hint="drop alerts",
                )

    def poll(self) -> list[Record]:
        """New acknowledgements, frontiers, heartbeats, samples and held openings. Raises FencedError if
        another registry has begun.
        """
        records = self._reader.poll(limit=AT_ONCE)
        self.behind = len(records) == AT_ONCE
        for record in records:
            if record.topic == STATEMENTS and record.key == FLEET and self._is_taken(record):
                raise FencedError
        return [record for record in records if record.topic != STATEMENTS and not _is_own_silence(record)]

    def reachable(self) -> bool:
        """True if Kafka answers now."""
        return self._reader.reachable(2.0)

    @property
    def trouble(self) -> str:
        """The reason why Kafka doesn't answer."""
        return str(self._reader.trouble or f"Kafka at {self._kafka.bootstrap} does not answer")

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._parts.close()

    def _check_owner(self, found: Recovered) -> None:
        if self._is_foreign(found.statements.get(FLEET)):
            raise FencedError

    def _is_taken(self, record: Record) -> bool:
        """True if a record of the fleet says that another process writes now. A damaged one doesn't."""
        damaged = record.value is not None and damage(FLEET, record.value) is not None
        return not damaged and self._is_foreign(record.value)

    def _is_foreign(self, fleet: bytes | None) -> bool:
        return fleet is not None and owner(fleet) != self._owner

    def _snapshot(self) -> Recovered:
        found = Recovered()
        tables = {
            STATEMENTS: found.statements,
            ACKS: found.acks,
            FRONTIERS: found.frontiers,
            SKETCHES: found.sketches,
            SILENCES: found.silences,
            HEARTBEATS: found.heartbeats,
        }
        for record in self._reader.snapshot():
            if record.key is None:
                continue
            if record.topic == STATEMENTS:
                why = None if record.value is None else damage(record.key, record.value)
                if why is not None:
                    found.damaged[record.key] = Unreadable(record, why)
                    continue
                found.damaged.pop(record.key, None)
            if record.value is None:
                tables[record.topic].pop(record.key, None)
            else:
                tables[record.topic][record.key] = record.value
        return found

    def _transaction(self, records: Iterable[_Sent], delivered: Delivered | None = None) -> None:
        self._call(self._producer.begin_transaction)
        try:
            for record in records:
                self._produce(record, delivered)
            self._call(self._producer.commit_transaction, TRANSACTION_SECONDS)
        except UnavailableError:
            # Where this fails too, the next producer of the name aborts what is left.
            with suppress(KafkaException):
                self._producer.abort_transaction(TRANSACTION_SECONDS)
            raise

    def _produce(self, sent: _Sent, delivered: Delivered | None) -> None:
        while True:
            try:
                self._producer.produce(
                    *(sent.topic, sent.value, sent.key, sent.partition),
                    headers=sent.headers or None,
                    on_delivery=delivered,
                )
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._explain(error) from error

    def _call(self, step: Callable[..., object], *arguments: float) -> None:
        try:
            step(*arguments)
        except KafkaException as error:
            raise self._explain(error) from error

    def _explain(self, error: KafkaException) -> UnavailableError:
        if error.args[0].code() in _FENCED:
            return LostTransactionError()
        if error.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return self._connection.not_authorized(f"no Write on transactional id {TRANSACTIONAL_ID}")
        self._producer.poll(0)  # the cause comes to the callback
        return self._connection.error(error)


def _is_own_silence(record: Record) -> bool:
    return record.topic == SILENCES and not (record.key or b"").startswith(_HELD)

"""The registry's Kafka: one transactional writer, and readers of the topics in which its state lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import orjson
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from tamis.errors import InputError, RefusedError, UnavailableError
from tamis.messaging.compacted import CompactedReader, Record
from tamis.messaging.records import final_record
from tamis.messaging.topics import ACKS, FRONTIERS, MAX_RECORD_BYTES, PLANS, SKETCHES, STATEMENTS
from tamis.planning.plan_text import LARGEST, Written
from tamis.settings import KafkaSettings
from tamis_registry.admin import Topics
from tamis_registry.core.change import Final
from tamis_registry.core.state import FLEET
from tamis_registry.history import History

# Kafka lets one producer of this name write at a time: that is what makes the registry single.
TRANSACTIONAL_ID = "tamis-registry"
TRANSACTION_SECONDS = 10.0
# A plan says the same of thousands of queries: a fifteenth is left of it.
COMPRESSION = "zstd"
OVERHEAD = 1024  # bytes of a record besides its value, and more

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
    """The broker ended our transaction: another registry has begun, or it took too long. Only the `owner` in
    `tamis.statements` tells which.
    """

    def __init__(self) -> None:
        super().__init__(
            "the transaction was ended by the broker", where=f"transactional id {TRANSACTIONAL_ID}"
        )


@dataclass
class Recovered:
    """What the topics held. `plans`: of any partition, committed or not."""

    statements: dict[bytes, bytes] = field(default_factory=dict)
    acks: dict[bytes, bytes] = field(default_factory=dict)
    frontiers: dict[bytes, bytes] = field(default_factory=dict)
    sketches: dict[bytes, bytes] = field(default_factory=dict)
    plans: History = field(default_factory=History)


class Store:
    """Opened once per attempt: after any failure it is closed and another is opened (the same as a
    restart).
    """

    def __init__(self, kafka: KafkaSettings, owner: str) -> None:
        self._kafka = kafka
        self._owner = owner
        self._compressed = (0, 0)  # what was made by a plan that was compressed, and its size then
        config = kafka.client_config()
        self.topics = Topics(config)
        self.topics.ensure_single()
        self._reader = CompactedReader(config, (STATEMENTS, ACKS, FRONTIERS, SKETCHES))
        self._producer = Producer(
            kafka.client_config(
                transactional_id=TRANSACTIONAL_ID,
                transaction_timeout_ms=int(TRANSACTION_SECONDS * 1000),
                # Of what is sent; the broker limits what is left of it once it is compressed.
                message_max_bytes=LARGEST + OVERHEAD,
                compression_type=COMPRESSION,
                linger_ms=0,
            )
        )

    def take_over(self, mine: bool) -> Recovered:
        """Fence whoever wrote before, and read everything.

        With `mine` this process has been the writer before and wants to be it again: if another has taken
        over meanwhile, that one stays (FencedError).
        """
        if mine:
            found = self._snapshot()
            if self._is_foreign(found.statements.get(FLEET)):
                raise FencedError
        self._call(self._producer.init_transactions, TRANSACTION_SECONDS)
        # Read only now: whatever the one before was writing is either there or aborted.
        return self._snapshot()

    def read_plans(self, into: Recovered) -> None:
        """The newest plan versions in any partition, aborted ones too: someone may have read them."""
        with CompactedReader(self._kafka.client_config(), (PLANS,), committed=False) as reader:
            for record in reader.snapshot():
                if record.value is not None:
                    into.plans.add(int(orjson.loads(record.value)["version"]), record.value)

    def write_statements(self, changed: Mapping[bytes, bytes | None]) -> None:
        """One transaction on `tamis.statements`."""
        self._transaction((STATEMENTS, 0, key, value) for key, value in changed.items())

    def write_plan(self, plan: bytes, partitions: int, finals: Iterable[Final]) -> None:
        """The plan in every partition and the final records, as one transaction."""
        records: list[tuple[str, int, bytes | None, bytes | None]] = [
            (PLANS, partition, b"plan", plan) for partition in range(partitions)
        ]
        records += [
            (final.topic, partition, None, final_record(final.shard, final.version))
            for final in finals
            for partition in range(partitions)
        ]
        self._transaction(records)

    def check_plan(self, plan: Written) -> None:
        """Raises InputError where a plan is more than a broker takes."""
        if plan.size <= MAX_RECORD_BYTES // 2:
            return
        made, size = self._compressed
        # To compress thousands of queries takes longer than to plan one: what is new counts in full first.
        if plan.made < made or size + plan.made - made > MAX_RECORD_BYTES * 3 // 4:
            size = len(pa.compress(plan.document, codec=COMPRESSION, asbytes=True))
            self._compressed = plan.made, size
            if size > MAX_RECORD_BYTES - OVERHEAD:
                raise InputError(
                    f"the plan has {size} bytes, compressed; at most {MAX_RECORD_BYTES} fit",
                    where="plan",
                    hint="drop alerts",
                )

    def poll(self) -> list[Record]:
        """What came on the acknowledgements and frontiers; raises FencedError when another registry has
        begun.
        """
        records = self._reader.poll()
        for record in records:
            if record.topic == STATEMENTS and record.key == FLEET and self._is_foreign(record.value):
                raise FencedError
        return [record for record in records if record.topic != STATEMENTS]

    def reachable(self) -> bool:
        """Whether Kafka answers now."""
        return self._reader.reachable(2.0)

    def close(self) -> None:
        """Let go of the connections."""
        self._reader.close()

    def _is_foreign(self, fleet: bytes | None) -> bool:
        return fleet is not None and orjson.loads(fleet)["owner"] != self._owner

    def _snapshot(self) -> Recovered:
        found = Recovered()
        tables = {
            STATEMENTS: found.statements,
            ACKS: found.acks,
            FRONTIERS: found.frontiers,
            SKETCHES: found.sketches,
        }
        for record in self._reader.snapshot():
            if record.key is None:
                continue
            if record.value is None:
                tables[record.topic].pop(record.key, None)
            else:
                tables[record.topic][record.key] = record.value
        return found

    def _transaction(self, records: Iterable[tuple[str, int, bytes | None, bytes | None]]) -> None:
        self._call(self._producer.begin_transaction)
        try:
            for topic, partition, key, value in records:
                self._produce(topic, partition, key, value)
            self._call(self._producer.commit_transaction, TRANSACTION_SECONDS)
        except UnavailableError:
            # Where this fails too, the next producer of the name aborts what is left.
            with suppress(KafkaException):
                self._producer.abort_transaction(TRANSACTION_SECONDS)
            raise

    def _produce(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise _explain(error) from error

    def _call(self, step: Callable[..., object], *arguments: float) -> None:
        try:
            step(*arguments)
        except KafkaException as error:
            raise _explain(error) from error


def _explain(error: KafkaException) -> UnavailableError:
    reason = error.args[0]
    if reason.code() in _FENCED:
        return LostTransactionError()
    return UnavailableError(reason.str(), where="Kafka", hint="it is tried again; check that Kafka is up")

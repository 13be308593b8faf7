"""Read a topic from its beginning to its end, then follow it: so state that lives in compacted topics is
recovered.

There is no consumer group: whoever reads takes every partition from the beginning, each time it starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tamis.errors import UnavailableError

# Connections come and go; the client connects again by itself.
_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT}

# One look at the broker may take this long before it counts as away.
METADATA_SECONDS = 5.0


@dataclass(frozen=True)
class Record:
    """One record; `value` None is a tombstone: what was under `key` is gone. `timestamp` is Kafka's, in
    ms.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0  # milliseconds


class CompactedReader:
    """All partitions of some topics. `config` is `KafkaSettings.client_config()`; for one thread at a time.

    With `committed` False the records of open and aborted transactions come too.
    """

    def __init__(self, config: Mapping[str, Any], topics: Sequence[str], *, committed: bool = True) -> None:
        self._topics = tuple(topics)
        self._ends: set[tuple[str, int]] = set()
        self._consumer = Consumer(
            {
                **config,
                # librdkafka wants a name, though nothing joins a group or commits.
                "group.id": "tamis-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                # Records must not wait a second on the broker for more to come.
                "fetch.wait.max.ms": 100,
            }
        )

    def __enter__(self) -> CompactedReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(self, timeout: float = 30.0) -> Iterator[Record]:
        """Every record from the beginning to the end as it is when each partition's end is met.

        Raises UnavailableError where a topic is missing or `timeout` seconds pass without the end.
        """
        deadline = time.monotonic() + timeout
        partitions = self._partitions()
        self._ends.clear()
        self._consumer.assign([TopicPartition(name, number, 0) for name, number in partitions])
        while len(self._ends) < len(partitions):
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"the end was not reached within {timeout:.0f} s",
                    where=", ".join(self._topics),
                    hint="check that Kafka is up and try again",
                )
            yield from self.poll(0.5)

    def poll(self, timeout: float = 0.0, limit: int = 1000) -> list[Record]:
        """The next records, at most `limit`, after waiting `timeout` seconds for the first; [] for none.

        A broker that is away only makes the wait empty: the client connects again by itself.
        """
        records = []
        for message in self._consumer.consume(limit, timeout):
            error = message.error()
            if error is None:
                records.append(_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.add((str(message.topic()), message.partition() or 0))
            elif not error.retriable() and error.code() not in _PASSING:
                raise UnavailableError(error.str(), where=", ".join(self._topics))
        return records

    def reachable(self, timeout: float = METADATA_SECONDS) -> bool:
        """Whether the broker answers now."""
        try:
            self._consumer.get_watermark_offsets(TopicPartition(self._topics[0], 0), timeout=timeout)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def _partitions(self) -> list[tuple[str, int]]:
        found = []
        for name in self._topics:
            try:
                topic = self._consumer.list_topics(name, timeout=METADATA_SECONDS).topics[name]
            except KafkaException as error:
                raise UnavailableError(
                    error.args[0].str(), where=f"topic {name}", hint="check that Kafka is up and try again"
                ) from error
            if topic.error is not None:
                raise UnavailableError(
                    topic.error.str(),
                    where=f"topic {name}",
                    hint="the registry creates the topics: start it first",
                )
            found += [(name, number) for number in topic.partitions]
        return found


def _record(message: Message) -> Record:
    return Record(
        topic=str(message.topic()),
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        timestamp=message.timestamp()[1],
    )

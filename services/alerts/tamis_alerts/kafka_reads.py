"""Reads from Kafka that several modules need: all records up to the end, and the offsets of a partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tamis.errors import UnavailableError
from tamis.messaging.connection import Connection

SILENCE_SECONDS = 30.0
POLL_SECONDS = 0.2


def read_to_end(
    consumer: Consumer,
    connection: Connection,
    partitions: Sequence[TopicPartition],
    *,
    batch: int,
    silence: float = SILENCE_SECONDS,
) -> Iterator[Message]:
    """All records from the offsets of `partitions` to the end of each partition. The end is the one at the
    time when the reader reaches it.

    `consumer` must have `enable.partition.eof` set, and `connection` as its error callback. `batch` is the
    most records of one poll. Raises UnavailableError if Kafka sends nothing for `silence` seconds. The
    caller may take any time between two records.
    """
    left = {(at.topic, at.partition) for at in partitions}
    consumer.assign(list(partitions))
    silent = 0.0
    while left:
        messages = consumer.consume(batch, POLL_SECONDS)
        # Empty polls are counted instead of reading a clock: neither the time that the caller takes for a
        # record counts, nor that of a suspended process.
        silent = 0.0 if messages else silent + POLL_SECONDS
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard((str(message.topic()), message.partition() or 0))
            elif not error.retriable():
                raise connection.error(error)
        if silent > silence:
            raise connection.trouble or UnavailableError(
                f"Kafka sent nothing for {silence:g} s before the end was reached",
                where=partitions[0].topic,
                hint="check that Kafka is up and try again",
            )


def offset_range(consumer: Consumer, at: TopicPartition, timeout: float) -> tuple[int, int]:
    """The offset of the first record of a partition, and the offset after its last record."""
    found = consumer.get_watermark_offsets(at, timeout=timeout)
    assert found is not None, "only a lookup in the client's cache can find nothing"
    return found

"""Records that Kafka refuses permanently: they become dead letters, or files if Kafka refuses these too."""

from __future__ import annotations

from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.topics import DEAD_LETTERS
from tamis_edge.core.messages.records import ANY_PARTITION, Record


def size_of(record: Record) -> int:
    """The size of a record in bytes, as the limit of a topic counts it, without some overhead."""
    headers = sum(len(name) + len(value) for name, value in record.headers or ())
    return len(record.value) + len(record.key or b"") + headers


def letter_of(record: Record, reason: Reason, error: str, edge: str) -> Record:
    """The dead letter of a tuple of `edge`: the value that would have been published, with the tuple's own
    token.
    """
    letter = DeadLetter(record.value, "edge", record.topic, record.partition, -1, reason, error, edge)
    headers = letter.headers()
    return Record(record.token, DEAD_LETTERS, ANY_PARTITION, None, record.value, record.arrival, headers)

"""Answers to requests for the beginnings and ends of partitions (`AdminClient.list_offsets`)."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException


def listed_offset(answer: Future[Any]) -> int:
    """The offset of a partition, 0 or more. Blocks until the answer has come.

    Raises KafkaException if the offset isn't known now. If no broker answers in time, librdkafka gives the
    offset -1001 and no error. A reader that took it for an end would start again at the beginning.
    """
    offset = int(answer.result().offset)
    if offset < 0:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Kafka gave no offset in time"))
    return offset

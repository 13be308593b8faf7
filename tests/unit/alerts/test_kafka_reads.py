"""Reading a topic to its end: silence of Kafka is an error, time that the caller takes is not."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tamis.errors import UnavailableError
from tamis.messaging.connection import Cluster, Connection
from tamis_alerts import kafka_reads
from tamis_alerts.kafka_reads import read_to_end

AT = TopicPartition("t", 0, 0)


class Record:
    """A record, or the event that a partition has ended."""

    def __init__(self, error: int | None = None) -> None:
        self._error = error

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0


class Polls:
    """A consumer with the given answers to its polls, and no more."""

    def __init__(self, *answers: list[Record]) -> None:
        self._answers = list(answers)
        self.assigned: Any = None

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def consume(self, *_: object) -> list[Record]:
        return self._answers.pop(0) if self._answers else []


def read(polls: Polls, silence: float) -> Any:
    return read_to_end(cast(Consumer, polls), Connection(Cluster("k:1")), [AT], batch=10, silence=silence)


END = Record(KafkaError._PARTITION_EOF)


def test_it_ends_where_the_partition_ends() -> None:
    polls = Polls([Record(), Record()], [], [Record(), END])
    assert len(list(read(polls, 1.0))) == 3
    assert polls.assigned == [AT]


def test_silence_is_an_error() -> None:
    with pytest.raises(UnavailableError, match=r"t: Kafka sent nothing for 1 s before the end"):
        list(read(Polls([Record()]), 1.0))


def test_the_time_that_the_caller_takes_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink may take minutes for a notification, while Kafka has nothing to send."""
    monkeypatch.setattr(kafka_reads, "POLL_SECONDS", 0.01)
    found: list[Message] = []
    for message in read(Polls([Record()], [], [END]), 0.05):
        time.sleep(0.2)
        found.append(message)
    assert len(found) == 1


def test_an_error_that_does_not_pass_is_raised() -> None:
    refused = Record(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(UnavailableError, match="not authorized"):
        list(read(Polls([refused]), 1.0))

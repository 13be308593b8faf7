"""Dead letters of notifications that a sink has not taken."""

from __future__ import annotations

import threading

from confluent_kafka import KafkaError, Producer

from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.topics import DEAD_LETTERS, MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger

PAUSE_SECONDS = 1.0

log = get_logger("alerts.sinks")


def write_dead_letter(kafka: KafkaSettings, letter: DeadLetter, stopping: threading.Event) -> bool:
    """Write a dead letter and wait until Kafka has it, for as long as that takes. False if `stopping` is set
    first.
    """
    producer = Producer(kafka.client_config(message_max_bytes=MAX_RECORD_BYTES, enable_idempotence=True))
    while not stopping.is_set():
        answers: list[KafkaError | None] = []
        producer.produce(
            DEAD_LETTERS,
            letter.payload,
            headers=dict(letter.headers()),
            on_delivery=lambda error, _, answers=answers: answers.append(error),  # type: ignore[misc]
        )
        while producer.flush(PAUSE_SECONDS) and not stopping.is_set():
            pass
        if answers == [None]:
            return True
        if answers and answers[0] is not None:
            log.error("a dead letter can't be written", sink=letter.sink, error=answers[0].str())
            stopping.wait(PAUSE_SECONDS)
    return False

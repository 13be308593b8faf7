"""Attempts to write a notification into a topic of the fleet's Kafka."""

from __future__ import annotations

import asyncio

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.messaging.records import canonical_key
from tamis.messaging.topics import MAX_RECORD_BYTES
from tamis.settings import KafkaSettings
from tamis_alerts.core.notifications import Notification, event_id
from tamis_alerts.sink_settings import KafkaTopic
from tamis_alerts.sinks.notification import SendError, body

POLL_SECONDS = 0.01
# Errors of the record itself. No other attempt changes them.
_LASTING = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.TOPIC_EXCEPTION)


class KafkaTransport:
    """Writes events with the key of `tamis.episodes`, so that those of one alert and key stay in order."""

    def __init__(self, sink: KafkaTopic, kafka: KafkaSettings) -> None:
        self._sink, self._topic = sink, sink.topic
        self._producer = Producer(
            kafka.client_config(
                message_max_bytes=MAX_RECORD_BYTES,
                enable_idempotence=True,
                partitioner="murmur2_random",
                # A record that the attempt has given up must not be written after the next attempt's.
                message_timeout_ms=max(1, int(sink.timeout * 1000)),
                # By default the client takes 30 s to say that a topic doesn't exist.
                topic_metadata_propagation_max_ms=1000,
            )
        )

    async def send(self, notification: Notification) -> None:
        """Write an event and wait until all replicas in sync have it. Raises SendError."""
        episode, answers = notification.episode, list[KafkaError | None]()

        def answered(error: KafkaError | None, _: Message) -> None:
            answers.append(error)

        try:
            self._producer.produce(
                self._topic,
                body(self._sink.body, notification),
                canonical_key((episode["alert"], *episode["key"])),
                headers={"idempotency-key": event_id(episode).encode()},
                on_delivery=answered,
            )
        except (KafkaException, BufferError) as error:
            raise self._error(error.args[0]) from None
        while not answers:
            self._producer.poll(0)
            if not answers:
                await asyncio.sleep(POLL_SECONDS)
        if answers[0] is not None:
            raise self._error(answers[0])

    async def close(self) -> None:
        """Drop the records that are not yet written: their notifications still wait in Kafka."""
        self._producer.purge()
        self._producer.poll(0)

    def _error(self, error: object) -> SendError:
        if isinstance(error, KafkaError):
            return SendError(f"topic {self._topic}: {error.str()}", passing=error.code() not in _LASTING)
        return SendError(f"topic {self._topic}: {error}")

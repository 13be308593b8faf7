"""Records of a machine whose clock is ahead of the broker's: no topic of the fleet refuses them."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tamis.local.broker import EmbeddedKafka
from tamis.messaging.topics import SPECS, stream_topic
from tamis.settings import KafkaSettings
from tamis_alerts.state_store import CHANGELOG, StateStore
from tamis_registry.kafka.topic_admin import TopicAdmin

HOUR = 3_600_000
STREAM = stream_topic("air", 1)
TOPICS = [STREAM, CHANGELOG, *(spec.name for spec in SPECS if "<" not in spec.name)]


@pytest.mark.parametrize("ahead", [6 * HOUR, 20 * 365 * 24 * HOUR])
def test_a_record_from_a_clock_that_is_ahead(empty: EmbeddedKafka, ahead: int) -> None:
    config = KafkaSettings(bootstrap=empty.bootstrap).client_config()
    topics = TopicAdmin(config)
    topics.ensure_base(1)
    topics.ensure_streams([STREAM], 1)
    StateStore(config).create(1)
    refused: dict[str, str] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        refused[message.topic() or ""] = error.str() if error else ""

    producer = Producer(config)
    for topic in TOPICS:
        moment = time.time_ns() // 1_000_000 + ahead
        producer.produce(topic, b"{}", b"k", 0, timestamp=moment, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert refused == dict.fromkeys(TOPICS, "")

"""Heartbeats where their topic isn't there yet, as in a fleet whose registry is of an older release."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.local.broker import EmbeddedKafka
from tamis.messaging.heartbeat_sender import LATE_SECONDS, HeartbeatSender
from tamis.messaging.heartbeats import ALERTS, Heartbeat
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import HEARTBEATS
from tamis.settings import KafkaSettings


def test_a_service_says_that_the_topic_is_missing_and_sends_once_it_is_there(
    empty: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = KafkaSettings(bootstrap=empty.bootstrap)
    said = []

    def told() -> bool:
        said.append(capsys.readouterr().out)
        return "the registry gets no heartbeat of this service" in "".join(said)

    with HeartbeatSender(kafka, ALERTS, Heartbeat.of_this_process) as sender:
        _until(told)
        # The client has asked again by then, and refuses to take a record.
        time.sleep(2 * LATE_SECONDS)
        assert sender._thread.is_alive()
        said.append(capsys.readouterr().out)
        assert "".join(said).count(f"there is no topic {HEARTBEATS}") == 1, said
        admin = AdminClient(kafka.client_config())
        admin.create_topics([NewTopic(HEARTBEATS, 1, 1)])[HEARTBEATS].result(30)
        with TopicReader(kafka.client_config(), [HEARTBEATS]) as reader:
            _until(lambda: any(record.key == ALERTS.encode() for record in reader.snapshot()))


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)

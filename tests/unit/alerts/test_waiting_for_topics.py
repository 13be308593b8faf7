"""Readiness of the alerts service while it waits for its topics."""

from __future__ import annotations

import threading
import time

from tamis.messaging.probe import wait_for_topics
from tamis.settings import KafkaSettings
from tamis.telemetry import Health
from tamis_alerts.service import TOPICS


def test_a_kafka_that_is_away_is_not_taken_for_missing_topics() -> None:
    health, stopping = Health(), threading.Event()
    kafka = KafkaSettings(bootstrap="127.0.0.1:1")
    waiting = threading.Thread(target=wait_for_topics, args=(kafka, TOPICS, health, stopping))
    waiting.start()
    until = time.monotonic() + 30
    while health.readiness() == (False, "starting") and time.monotonic() < until:
        time.sleep(0.05)
    stopping.set()
    waiting.join()
    ready, reason = health.readiness()
    assert not ready
    assert reason.startswith("Kafka at 127.0.0.1:1: can't be reached: ")

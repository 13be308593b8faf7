"""Records that Kafka deleted before they were read are counted once."""

from __future__ import annotations

import threading

import pytest

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis_joiner.monitoring import kafka_monitor
from tamis_joiner.monitoring.deletions import LostRecords
from tamis_joiner.monitoring.kafka_monitor import KafkaMonitor

T = "tamis.stream.a.1"


def counted(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("tamis_joiner_lost_records_total")


def test_lost_records_are_counted_once() -> None:
    metrics = Metrics("joiner")
    lost = LostRecords(metrics)
    lost.count({T: {0: 10, 1: 5}}, {T: {0: 14, 1: 5}})
    lost.count({T: {0: 10, 1: 5}}, {T: {0: 14, 1: 5}})
    assert counted(metrics) == 4
    lost.count({T: {0: 10, 1: 5}}, {T: {0: 20, 1: 5}})
    assert counted(metrics) == 10
    lost.count({T: {0: 20, 1: 5}}, {T: {0: 21, 1: 5}})
    assert counted(metrics) == 11


def test_a_deleted_topic_has_lost_nothing() -> None:
    metrics = Metrics("joiner")
    LostRecords(metrics).count({T: {0: 10}}, {})
    assert counted(metrics) in (None, 0)


def test_lost_records_are_not_counted_again_after_kafka_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topics are read again from their beginning, and the same batch is looked at."""
    metrics = Metrics("joiner")
    monkeypatch.setattr(kafka_monitor, "LOST_RECORDS_SECONDS", -1.0)
    monkeypatch.setattr(kafka_monitor, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(kafka_monitor, "least_offsets", lambda *_: {T: {0: 14}})
    monkeypatch.setattr(kafka_monitor, "newest_plan", lambda *_: None)
    turns: list[str] = []

    class Away:
        """Kafka that is away at every second look."""

        def __init__(self, _: object, topics: list[str]) -> None:
            self.topics = topics

        def __enter__(self) -> Away:
            return self

        def __exit__(self, *_: object) -> None:
            turns.append("closed")

        def snapshot(self) -> list[object]:
            return []

        def poll(self, _: float = 0.0) -> list[object]:
            if len(turns) > 6:
                closing.set()
            raise UnavailableError("Kafka is away")

    closing = threading.Event()
    monkeypatch.setattr(kafka_monitor, "TopicReader", Away)
    monitor = KafkaMonitor(KafkaSettings(), metrics, Health(), partitions=1, read_from=lambda: {T: {0: 10}})
    monitor._run(closing)
    assert len(turns) > 6
    assert counted(metrics) == 4

"""Commits of a sink's queue while notifications go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics
from tamis_alerts.core.offset_tracker import OffsetTracker
from tamis_alerts.sinks.delivery import LogDelivery
from tamis_alerts.sinks.group_offsets import Position
from tamis_alerts.sinks.sink_queue import SinkQueue


def test_a_commit_reads_the_offsets_in_the_thread_that_changes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a notification that ends meanwhile changes a set during its iteration, which ended the service."""
    queue = SinkQueue("log", LogDelivery, KafkaSettings(bootstrap="127.0.0.1:1"), Metrics("alerts"))
    tracker = queue._trackers[0] = OffsetTracker(0, 10)
    for offset in range(4):
        tracker.add(offset)
    tracker.done(0)
    threads: set[int] = set()
    to_commit = OffsetTracker.to_commit
    committed: list[Mapping[int, Position]] = []

    def noting(self: OffsetTracker) -> Position:
        threads.add(threading.get_ident())
        return to_commit(self)

    def commit(positions: Mapping[int, Position]) -> bool:
        assert threading.get_ident() not in threads
        committed.append(positions)
        if len(committed) == 1:
            tracker.done(2)  # a notification ends while Kafka answers
        return True

    monkeypatch.setattr(OffsetTracker, "to_commit", noting)
    offsets: Any = queue._offsets
    monkeypatch.setattr(offsets, "commit", commit)
    asyncio.run(queue._commit())
    assert threads == {threading.get_ident()}
    assert committed == [{0: (1, "")}]
    asyncio.run(queue._commit())
    assert committed[1:] == [{0: (1, "1-1")}]
    queue._consumer.close()

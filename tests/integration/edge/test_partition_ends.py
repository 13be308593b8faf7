"""The ends of partitions, as an edge asks a real broker for them."""

from __future__ import annotations

import os
import signal

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.edges import wait_for

from tamis.local.broker import EmbeddedKafka
from tamis.settings import KafkaSettings
from tamis_edge.sources.kafka import partitions
from tamis_edge.sources.kafka.partitions import PartitionEnds


def test_a_broker_that_does_not_answer_in_time_says_nothing_about_ends(
    empty: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client then gives offsets below 0 and no error. An edge would count what waits in Kafka as read,
    and advance the time of the stream past it.
    """
    config = KafkaSettings(bootstrap=empty.bootstrap).client_config()
    admin = AdminClient(dict(config))
    admin.create_topics([NewTopic("readings", 2, 1)])["readings"].result(30)
    monkeypatch.setattr(partitions, "SECONDS", 1.0)
    ends = PartitionEnds(config, "readings")
    known: dict[int, int] = {}

    def answered() -> bool:
        known.update(ends.answers())
        return not ends._asked

    def ask() -> dict[int, int]:
        known.clear()
        ends.ask([0, 1])
        wait_for("the answers", answered)
        return known

    wait_for("the ends", lambda: ask() == {0: 0, 1: 0})
    os.kill(empty.pid, signal.SIGSTOP)
    try:
        while ask() == {0: 0, 1: 0}:
            pass  # the signal has not reached all threads of the broker yet
        assert known == {}
    finally:
        os.kill(empty.pid, signal.SIGCONT)
    wait_for("the ends again", lambda: ask() == {0: 0, 1: 0})
    ends.close()

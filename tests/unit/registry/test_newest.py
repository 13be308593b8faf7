"""The newest records of a search: no more than its limit are kept, in whichever order they come."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import KafkaError, KafkaException

from tamis.errors import UnavailableError
from tamis.messaging.connection import Cluster, Connection
from tamis.messaging.topic_reader import answer_of
from tamis_registry.kafka.newest import Entry, _Search


@pytest.mark.parametrize("seed", range(20))
def test_a_search_keeps_the_newest_records_and_no_others(seed: int) -> None:
    numbers = random.Random(seed)
    limit = numbers.randrange(1, 8)
    search: _Search[int] = _Search(time.monotonic() + 60, 1, limit)
    entries = [
        Entry("t", numbers.randrange(3), offset, numbers.randrange(6), offset)
        for offset in range(numbers.randrange(30))
    ]
    for entry in entries:
        search.keep(entry)
        assert len(search.kept) <= limit
    newest = sorted(entries, key=lambda one: one.age, reverse=True)[:limit]
    assert sorted((one for _, one in search.kept), key=lambda one: one.age, reverse=True) == newest
    assert search.left_out == (len(entries) > limit)
    for horizon in range(7):
        assert search.is_full(horizon) == (sum(one.time >= horizon for one in entries) >= limit)


def test_a_broker_that_no_longer_leads_a_partition_is_asked_again() -> None:
    refusals = [KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)] * 2

    def ends() -> tuple[int, int]:
        if refusals:
            raise KafkaException(refusals.pop())
        return 3, 9

    connection = Connection(Cluster("127.0.0.1:9092"))
    assert answer_of(ends, connection) == (3, 9)
    refusals += [KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)] * 10
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:9092"):
        answer_of(ends, connection, 0.15)

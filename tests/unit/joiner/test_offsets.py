"""Offsets of a batch: at most a number of records, over all partitions, and each record in one batch."""

from __future__ import annotations

import random

import pytest

from tamis_joiner.monitoring.deletions import records_between
from tamis_joiner.reading.offsets import by_partition, decode, encode, limited, ranges


def document(r: random.Random, least: dict[str, dict[str, int]], most: int) -> dict[str, dict[str, int]]:
    """Offsets not below `least`, maybe with one more topic."""
    topics = [*least, f"t{len(least)}"] if r.random() < 0.3 else [*least]
    return {
        topic: {p: least.get(topic, {}).get(p, 0) + r.randint(0, most) for p in ("0", "1", "2")}
        for topic in topics
    }


@pytest.mark.parametrize("seed", range(50))
def test_batches_read_every_record_once_and_each_partition_gets_its_share(seed: int) -> None:
    r = random.Random(seed)
    start = document(r, {"a": {}}, 10_000)
    end = document(r, start, r.choice((3, 50, 100_000)))
    most = r.choice((1, 7, 1000, 10**6))
    read: dict[tuple[str, int], int] = {(one.topic, one.partition): one.start for one in ranges(start, end)}
    total = sum(one.end - one.start for one in ranges(start, end))
    for _ in range(20):
        until = limited(start, end, most)
        batch = ranges(start, until)
        size = sum(one.end - one.start for one in batch)
        left = ranges(start, end)
        # A partition gets at least one record, so that none waits for the others to be read.
        assert size < most + len(left) and {one[:2] for one in batch} == {one[:2] for one in left}
        for one in batch:
            assert one.start == read[one.topic, one.partition]
            read[one.topic, one.partition] = one.end
        assert decode(encode(batch)) == batch
        assert [one for _, some in by_partition(batch) for one in some] == sorted(
            batch, key=lambda one: (one.partition, one.topic)
        )
        assert records_between(_numbers(start), _numbers(until)) == size
        total -= size
        start = until
    assert total >= 0 and (total == 0) == (start == end)


def test_a_partition_that_went_back_is_not_read() -> None:
    start, end = {"a": {"0": 9, "1": 4}}, {"a": {"0": 2, "1": 6}}
    assert [tuple(one) for one in ranges(start, end)] == [("a", 1, 4, 6)]
    assert limited(start, end, 1) == {"a": {"0": 2, "1": 5}}
    assert records_between(_numbers(start), _numbers(end)) == 2


def _numbers(offsets: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): offset for p, offset in some.items()} for topic, some in offsets.items()}

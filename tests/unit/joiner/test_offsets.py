"""Offsets of a batch: at most a number of records, over all partitions, and each record in one batch."""

from __future__ import annotations

import random
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from tamis.errors import UnavailableError
from tamis_joiner.monitoring.deletions import records_between
from tamis_joiner.reading import offsets
from tamis_joiner.reading.offsets import LatestOffsets, by_partition, decode, encode, limited, ranges


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


class Silent:
    """A client that leaves each question open, as librdkafka may do when a broker goes away."""

    def __init__(self, _: Any) -> None:
        self.asked = 0

    def poll(self, _: float) -> None:
        """Nothing has happened."""

    def list_topics(self, **_: Any) -> Any:
        topic = SimpleNamespace(error=None, partitions={0: None, 1: None})
        return SimpleNamespace(topics={"t": topic})

    def list_offsets(self, wanted: Any, **_: Any) -> Any:
        self.asked += 1
        return {at: Future[Any]() for at in wanted}


class Answering(Silent):
    """One that answers."""

    def list_offsets(self, wanted: Any, **_: Any) -> Any:
        found = super().list_offsets(wanted)
        for future in found.values():
            future.set_result(SimpleNamespace(offset=7))
        return found


def test_a_question_that_is_left_open_is_asked_again_by_another_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offsets, "AdminClient", Silent)
    monkeypatch.setattr(offsets, "_ANSWER_SECONDS", 0.1)
    kafka = LatestOffsets({"bootstrap.servers": "127.0.0.1:1"}, "t")
    monkeypatch.setattr(offsets, "AdminClient", Answering)
    with pytest.raises(UnavailableError, match="gave no answer"):
        kafka.latest({"t": {"0": 3, "1": 4}})
    assert kafka.latest({"t": {"0": 3, "1": 4}})[0] == {"t": {"0": 7, "1": 7}}

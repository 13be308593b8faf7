"""What sources make of what comes from outside, without a broker."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from confluent_kafka import KafkaError
from tests.unit.edge.plans import air, topic

from tamis.settings import KafkaSettings
from tamis_edge.config import KafkaSource
from tamis_edge.core.commit import Commit
from tamis_edge.decode.decoder import Decoder, FieldMap
from tamis_edge.sources.http import split
from tamis_edge.sources.kafka import KafkaShard, KafkaTopic


class Message:
    """What a consumer hands over: a reading, or word of the partition's end."""

    def __init__(self, offset: int, end: bool = False) -> None:
        self._offset, self._error = offset, KafkaError(KafkaError._PARTITION_EOF) if end else None

    def error(self) -> KafkaError | None:
        return self._error

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"{}"


def caught_up(shard: KafkaShard) -> bool:
    return shard.caught_up


@pytest.fixture
def partition() -> Iterator[tuple[KafkaTopic, KafkaShard]]:
    """A partition that its shard reads; nobody answers on that port, and nobody is asked."""
    source = KafkaSource(name="k", kind="kafka", topic="raw", stream="air")
    owner = KafkaTopic(source, KafkaSettings(bootstrap="127.0.0.1:1"), lambda _: None, lambda _: None)
    shard = KafkaShard(owner, source, 0, Commit())
    owner._shards[0] = shard
    shard.started, shard.paused = True, False
    yield owner, shard
    owner.close()


def test_a_partition_is_caught_up_though_its_end_was_told_before_its_last_readings_were_taken(
    partition: tuple[KafkaTopic, KafkaShard],
) -> None:
    owner, shard = partition
    for message in (Message(0), Message(1), Message(2, end=True)):
        owner._take(message, 5)  # type: ignore[arg-type]
    assert not caught_up(shard)
    assert shard.poll(10, 5) is not None
    assert caught_up(shard)
    owner._take(Message(2), 6)  # type: ignore[arg-type]
    assert shard.poll(10, 6) is not None
    assert not caught_up(shard)  # the end was not told since


def test_a_partition_that_is_read_again_is_not_caught_up(partition: tuple[KafkaTopic, KafkaShard]) -> None:
    owner, shard = partition
    owner._take(Message(0, end=True), 5)  # type: ignore[arg-type]
    assert caught_up(shard)
    shard.paused = True  # so that stopping asks the broker for nothing
    shard.stop()
    assert not caught_up(shard)


def test_bodies_are_split_into_readings() -> None:
    assert split(b'{"a":1}', "application/json") == [b'{"a":1}']
    assert split(b'[{"a":1}, 2]', "") == [b'{"a":1}', b"2"]
    assert split(b'{"a":1}\nnot json\n', "") == [b'{"a":1}', b"not json"]
    assert split(b'{"a":1}', "application/x-ndjson") == [b'{"a":1}']
    for body in (b"", b"7", b"not json", b"not\njson", b"[" + b"[" * 400 + b"]" * 400 + b"]"):
        with pytest.raises(ValueError, match=r"JSON|item of the array|object nor array"):
            split(body, "")


def test_a_reading_that_is_nested_deeply_is_refused_with_its_request() -> None:
    deep = b'{"a":' + b"[" * 400 + b"]" * 400 + b"}"
    assert split(deep, "") == [deep]
    decoded = Decoder(air([topic([])]), FieldMap()).payloads([deep], 0)
    assert len(decoded.offences) == 1
    with pytest.raises(ValueError, match="item of the array"):
        split(orjson.dumps([1])[:1] + deep + b"]", "")

"""Commits of a consumer group whose partition moves to another member and back, without a broker."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis_edge.core.commit import Commit
from tamis_edge.settings import KafkaSource
from tamis_edge.sources.kafka.partitions import GroupCommits
from tamis_edge.sources.kafka.shard import KafkaShard
from tamis_edge.sources.kafka.topic import KafkaTopic

SOURCE = KafkaSource(name="k", kind="kafka", topic="raw", stream="air")


class Group:
    """A consumer that only notes commits; `answer` is the client's callback for one of them."""

    def __init__(self) -> None:
        self.sent: list[TopicPartition] = []
        self.commits = GroupCommits("raw")

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.sent += offsets

    def begin(self, shard: KafkaShard, done: int) -> Any:
        return self.commits.commit(self, shard, Commit(done=done))  # type: ignore[arg-type]

    def answer(self, number: int, error: KafkaError | None = None) -> None:
        self.commits.on_commit(error, [self.sent[number]])


def shard(done: int) -> KafkaShard:
    """The shard of partition 0, as it is assigned with this commit."""
    owner: KafkaTopic = object()  # type: ignore[assignment]
    return KafkaShard(owner, SOURCE, 0, Commit(done=done), lambda: 0.0)


def test_a_commit_that_ends_after_its_partition_is_back_does_not_change_the_new_shard() -> None:
    group, old, new = Group(), shard(0), shard(25)
    first = group.begin(old, 10)
    # Another member has committed 25 before the partition came back.
    group.answer(0)
    assert first.result(0) is None
    assert old.committed()[0].done == 10
    assert new.committed()[0].done == 25


@pytest.mark.parametrize("error", [None, KafkaError(KafkaError.ILLEGAL_GENERATION)])
def test_the_result_of_an_old_commit_is_not_taken_for_that_of_the_new_shard(error: KafkaError | None) -> None:
    group, old, new = Group(), shard(0), shard(25)
    first = group.begin(old, 10)
    second = group.begin(new, 30)
    with pytest.raises(UnavailableError, match="the partition has moved"):
        first.result(0)
    group.answer(0, error)
    assert not second.done()
    assert new.committed()[0].done == 25
    group.answer(1)
    assert second.result(0) is None
    assert new.committed()[0].done == 30


def test_a_revoked_shard_commits_nothing() -> None:
    settings = KafkaSettings(bootstrap="127.0.0.1:1")
    owner = KafkaTopic(SOURCE, settings, lambda _: None, lambda _: None, clock=lambda: 0.0)
    try:
        old = KafkaShard(owner, SOURCE, 0, Commit(), lambda: 0.0)
        owner._shards[0] = KafkaShard(owner, SOURCE, 0, Commit(done=25), lambda: 0.0)
        with pytest.raises(UnavailableError, match="the partition has moved"):
            old.commit(Commit(done=10), False).result(0)
    finally:
        owner.close()


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC])
def test_a_topic_that_does_not_exist_is_told_with_the_command_that_creates_it(code: int) -> None:
    settings = KafkaSettings(bootstrap="127.0.0.1:1")
    owner = KafkaTopic(SOURCE, settings, lambda _: None, lambda _: None, clock=lambda: 0.0)
    try:
        said = owner._reason(KafkaError(code))
    finally:
        owner.close()
    assert said.startswith("Kafka at 127.0.0.1:1: topic raw doesn't exist; create it: ")
    assert "--bootstrap-server 127.0.0.1:1 --create --topic raw " in said
    assert "check that it is up" not in said

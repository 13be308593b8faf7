"""Creating topics, which the registry alone does: one partition count for the whole fleet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import InputError, UnavailableError
from tamis.messaging.topics import MAX_RECORD_BYTES, SPECS, STREAM_PREFIX, TopicSpec

REQUEST_SECONDS = 10.0

# Compaction leaves the newest segment alone: with the broker's week-long segments each start would read
# all heartbeats of a week.
_SEGMENT_MS = 3_600_000

_STREAM_SPEC = next(spec for spec in SPECS if spec.name.startswith(STREAM_PREFIX))
BASE_SPECS = tuple(spec for spec in SPECS if not spec.name.startswith(STREAM_PREFIX))


class Topics:
    """Creates what is missing and checks the partition count of what is there."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._client = AdminClient(dict(config))

    def ensure_base(self, partitions: int) -> None:
        """Every topic that isn't a stream's."""
        self._ensure(BASE_SPECS, partitions)

    def ensure_single(self) -> None:
        """The topics of one partition, in which the fleet's partition count is found."""
        self._ensure((spec for spec in BASE_SPECS if spec.partitions == 1), 1)

    def ensure_streams(self, names: Iterable[str], partitions: int) -> None:
        """Shared topics of streams."""
        self._ensure(
            (TopicSpec(n, None, False, _STREAM_SPEC.retention_ms, "", "") for n in names), partitions
        )

    def check_streams(self, names: Iterable[str], partitions: int) -> None:
        """Raises InputError where one of these topics is there with another partition count."""
        wanted = dict.fromkeys(names, partitions)
        if wanted:
            _compare(wanted, self._counts())

    def _ensure(self, specs: Iterable[TopicSpec], partitions: int) -> None:
        wanted = {spec.name: (spec, spec.partitions or partitions) for spec in specs}
        present = self._counts()
        missing = {name: pair for name, pair in wanted.items() if name not in present}
        if missing:
            self._create(missing)
            present = self._wait_for(missing)
        _compare({name: count for name, (_, count) in wanted.items()}, present)

    def _create(self, missing: Mapping[str, tuple[TopicSpec, int]]) -> None:
        topics = [
            NewTopic(name, num_partitions=count, replication_factor=-1, config=_config(spec))
            for name, (spec, count) in missing.items()
        ]
        try:
            made = self._client.create_topics(topics, request_timeout=REQUEST_SECONDS)
            for future in made.values():
                _existing_is_fine(future)
        except KafkaException as error:
            raise _away(error) from error

    def _wait_for(self, names: Iterable[str]) -> dict[str, int]:
        """A created topic takes a moment until every broker knows it."""
        deadline = time.monotonic() + REQUEST_SECONDS
        while not set(names) <= (present := self._counts()).keys():
            if time.monotonic() > deadline:
                raise UnavailableError("new topics did not appear", where=", ".join(sorted(names)))
            time.sleep(0.05)
        return present

    def _counts(self) -> dict[str, int]:
        try:
            found = self._client.list_topics(timeout=REQUEST_SECONDS).topics
        except KafkaException as error:
            raise _away(error) from error
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}


def _compare(wanted: Mapping[str, int], present: Mapping[str, int]) -> None:
    for name, count in wanted.items():
        if present.get(name, count) != count:
            raise InputError(
                f"the topic has {present[name]} partitions, and the fleet has {count}",
                where=f"topic {name}",
                hint="delete the topic, or, where no fleet runs yet, set TAMIS_PARTITIONS to its count",
            )


def _existing_is_fine(future: Future[None]) -> None:
    try:
        future.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _config(spec: TopicSpec) -> dict[str, str]:
    config = {
        "cleanup.policy": "compact" if spec.compacted else "delete",
        "max.message.bytes": str(MAX_RECORD_BYTES),
    }
    if spec.compacted:
        config["segment.ms"] = str(_SEGMENT_MS)
        if spec.retention_ms is not None:
            config["min.compaction.lag.ms"] = str(spec.retention_ms)
    elif spec.retention_ms is not None:
        config["retention.ms"] = str(spec.retention_ms)
    return config


def _away(error: KafkaException) -> UnavailableError:
    return UnavailableError(error.args[0].str(), where="Kafka", hint="check that it is up and may be reached")

"""Creation of topics. Only the registry creates topics, so the whole fleet has one partition count."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.errors import InputError, UnavailableError
from tamis.messaging.connection import NOT_AUTHORIZED, Connection, answer_within
from tamis.messaging.topics import COMMON_CONFIG, PART_PREFIX, SPECS, STREAM_PREFIX, TopicSpec, part_topic

REQUEST_SECONDS = 10.0

# Compaction leaves the newest segment alone: with the broker's week-long segments each start would read
# all heartbeats of a week.
_SEGMENT_MS = 3_600_000

_STREAM_SPEC = next(spec for spec in SPECS if spec.name.startswith(STREAM_PREFIX))
_PART_SPEC = next(spec for spec in SPECS if spec.name.startswith(PART_PREFIX))
BASE_SPECS = tuple(spec for spec in SPECS if "<" not in spec.name)


class TopicAdmin:
    """Creates missing topics and checks the partition count of existing ones."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._connection = Connection.of(config)
        client: dict[str, Any] = {**config, "error_cb": self._connection}
        self._client = AdminClient(client)
        # None before the first request, and from a broker that doesn't tell it.
        self.cluster_id: str | None = None

    def ensure_base(self, partitions: int) -> None:
        """Create every topic that doesn't belong to a stream."""
        self._ensure(BASE_SPECS, partitions)

    def ensure_single(self) -> None:
        """Create the topics with one partition, in which the fleet's partition count is recorded."""
        self._ensure((spec for spec in BASE_SPECS if spec.partitions == 1), 1)

    def ensure_streams(self, names: Iterable[str], partitions: int) -> None:
        """Create shared topics of streams."""
        self._ensure(
            (TopicSpec(n, None, False, _STREAM_SPEC.retention_ms, "", "") for n in names), partitions
        )

    def ensure_parts(self, streams: Iterable[str]) -> None:
        """Create the topics of these streams' parts of plans."""
        self._ensure((replace(_PART_SPEC, name=part_topic(stream)) for stream in streams), 1)

    def check_streams(self, names: Iterable[str], partitions: int) -> None:
        """Raises InputError if one of these topics exists with another partition count."""
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
            NewTopic(name, num_partitions=count, replication_factor=-1, config=topic_config(spec))
            for name, (spec, count) in missing.items()
        ]
        try:
            made = self._client.create_topics(topics, request_timeout=REQUEST_SECONDS)
            for name, future in made.items():
                with self._named(name):
                    _existing_is_fine(future)
        except KafkaException as error:
            raise self._away(error) from error

    @contextmanager
    def _named(self, topic: str) -> Iterator[None]:
        """Name the right that is missing to create a topic."""
        try:
            yield
        except KafkaException as error:
            if error.args[0].code() in NOT_AUTHORIZED:
                raise self._connection.not_authorized(f"no Create on topic {topic}") from error
            raise

    def _wait_for(self, names: Iterable[str]) -> dict[str, int]:
        """Wait until every broker knows a created topic, which takes a moment."""
        deadline = time.monotonic() + REQUEST_SECONDS
        while not set(names) <= (present := self._counts()).keys():
            if time.monotonic() > deadline:
                raise UnavailableError("new topics did not appear", where=", ".join(sorted(names)))
            time.sleep(0.05)
        return present

    def _counts(self) -> dict[str, int]:
        try:
            found = self._client.list_topics(timeout=REQUEST_SECONDS)
        except KafkaException as error:
            raise self._away(error) from error
        self.cluster_id = found.cluster_id
        return {name: len(topic.partitions) for name, topic in found.topics.items() if topic.error is None}

    def _away(self, error: KafkaException) -> UnavailableError:
        self._client.poll(0)  # the cause comes to the callback
        return self._connection.error(error)


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
        answer_within(future, REQUEST_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def topic_config(spec: TopicSpec) -> dict[str, str]:
    """The settings of a topic that the broker gets when the topic is created."""
    config = {"cleanup.policy": "compact" if spec.compacted else "delete", **COMMON_CONFIG}
    if spec.compacted:
        config["segment.ms"] = str(_SEGMENT_MS)
        if spec.retention_ms is not None:
            config["min.compaction.lag.ms"] = str(spec.retention_ms)
    elif spec.retention_ms is not None:
        config["retention.ms"] = str(spec.retention_ms)
    return config

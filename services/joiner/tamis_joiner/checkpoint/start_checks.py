"""Checks of the checkpoint directory at the start of the joiner, before the query runs.

The directory must belong to a fleet with the same partition count: Spark takes the number of its tasks from
the checkpoint without a warning.

A checkpoint without a batch gets a warning where an earlier joiner has already worked with this Kafka. A new
directory is a remedy for a damaged checkpoint, so an empty one is no error. It may also be a disk that isn't
mounted.

Topics that were deleted and created again are read from their beginning. Spark stores an offset for each
topic partition, and knows a topic only by its name. In a topic that was created again it skips the records up
to the stored offset, or all records that are there. A plan that is skipped doesn't come again, and the joiner
would keep all later tuples waiting for it. So the joiner stores the ids that Kafka gave to the topics, beside
the query's directory. Where an id has changed, it removes the topic from the offsets of the query's last
batch. To Spark, its partitions are then new. Some records may be read twice by this. That is safe for joins,
because a tuple that appears twice is stored once, and for queries that count, because they drop tuples whose
places aren't greater than the last one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tamis.errors import InputError, RefusedError, UnavailableError
from tamis.messaging import topics
from tamis.messaging.rights import READERS
from tamis.messaging.topics import FRONTIERS
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_joiner.checkpoint.location import Files

_PARTITIONS = "tamis-joiner.json"
_OFFSETS = "query/offsets"

log = get_logger("joiner")

REQUEST_SECONDS = 5.0

_TOPICS = "tamis-topics.json"
# A version and Spark's settings, each in a line; the offsets of the sources follow.
_HEAD = 2

TopicIds = Mapping[str, str]
"""Kafka's id of each topic, by name."""


def check_partition_count(files: Files, partitions: int) -> None:
    """Create the directory, or check its partition count. The count is in the query's first batch; before
    that batch it is in a file that the joiner writes.

    Raises InputError if the directory can't be created, read or written, RefusedError if the counts differ.
    """
    try:
        recorded = _recorded_count(files)
        known = _of_query(files) or recorded or partitions
        if recorded != known:
            files.write(_PARTITIONS, json.dumps({"partitions": known}))
    except OSError as error:
        raise InputError(
            f"the checkpoint directory can't be created or written: {error.strerror or error}",
            where=files.location.uri,
            hint="choose another one with --checkpoint or TAMIS_JOINER_CHECKPOINT",
        ) from error
    if known != partitions:
        raise RefusedError(
            f"the checkpoint belongs to a fleet with {known} partitions; {topics.PLANS} has {partitions}",
            where=files.location.uri,
            hint="choose another checkpoint directory, or the Kafka that it belongs to",
        )


def partitions_of_offsets(text: str) -> int | None:
    """The partition count in the offsets of a batch; None if the text is damaged."""
    try:
        _, settings, *_ = text.splitlines()
        return int(json.loads(settings)["conf"]["spark.sql.shuffle.partitions"])
    except (ValueError, KeyError, TypeError):
        return None


def _of_query(files: Files) -> int | None:
    """The partition count with which the query began; None if no batch has been written."""
    batches = sorted((int(name) for name in files.names(_OFFSETS) if name.isdecimal()), reverse=True)
    for batch in batches:
        # A damaged file is skipped: every batch has the same count.
        if (text := files.read(f"{_OFFSETS}/{batch}")) and (count := partitions_of_offsets(text)) is not None:
            return count
    return None


def _recorded_count(files: Files) -> int | None:
    """The partition count that a joiner wrote; None if the file is missing or can't be read."""
    try:
        return int(json.loads(files.read(_PARTITIONS) or "")["partitions"])
    except (ValueError, KeyError, TypeError):
        return None


def warn_if_emptied(files: Files, worked_before: Callable[[], bool]) -> bool:
    """Log a warning if the query has no batch although `worked_before` says that one has run; returns True
    then. `worked_before` is asked only about a checkpoint without a batch. Raises OSError.
    """
    if any(name.isdecimal() for name in files.names("query/offsets")) or not worked_before():
        return False
    log.warning(
        "the checkpoint is empty, and a joiner has worked with this Kafka before: topics are read from their"
        " beginning, alarms come again with the same id, and queries that count begin anew; if this isn't"
        " meant, stop the joiner and restore its checkpoint",
        checkpoint=files.location.uri,
    )
    return True


def has_frontiers(kafka: KafkaSettings) -> bool:
    """True if a joiner has written frontiers to Kafka; False also if Kafka doesn't answer."""
    consumer = Consumer({**kafka.client_config(), "group.id": READERS})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(FRONTIERS, 0), timeout=REQUEST_SECONDS)
        return bool(end > 0)
    except KafkaException:
        return False
    finally:
        consumer.close()


class KnownTopics:
    """The ids of the topics that the query of a checkpoint directory has read.

    Methods raise UnavailableError if the directory can't be read or written.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        with _errors(files):
            self._known = _recorded_ids(files)

    def recreated(self, ids: TopicIds) -> list[str]:
        """The names of the known topics that have another id now. New topics become known."""
        if new := {name: topic_id for name, topic_id in ids.items() if name not in self._known}:
            self._record(self._known | new)
        return [name for name, topic_id in sorted(ids.items()) if topic_id != self._known[name]]

    def forget_recreated(self, ids: TopicIds) -> list[str]:
        """Let the query read from the beginning the topics that have another id now; returns their names.
        The query must not run.
        """
        found = self.recreated(ids)
        if found:
            self._forget(set(found))
            self._record({**self._known, **ids})
        return found

    def _forget(self, names: set[str]) -> None:
        """Remove topics from the last batch. If Spark runs this batch again, it reads nothing of them, and
        the next batch reads them from their beginning.
        """
        with _errors(self._files):
            batches = [int(name) for name in self._files.names(_OFFSETS) if name.isdecimal()]
            if batches:
                file = f"{_OFFSETS}/{max(batches)}"
                self._files.replace(file, without_topics(self._files.read(file) or "", names))

    def _record(self, known: dict[str, str]) -> None:
        with _errors(self._files):
            self._files.replace(_TOPICS, json.dumps(known))
        self._known = known


def without_topics(text: str, names: set[str]) -> str:
    """The offsets of a batch, as Spark writes them, without some topics. Raises ValueError if they are
    damaged.

    >>> offsets = '{"tamis.plans":{"0":8},"tamis.stream.air.1":{"0":5}}'
    >>> print(without_topics(f"v1\\n{{}}\\n{offsets}", {"tamis.plans"}))
    v1
    {}
    {"tamis.stream.air.1": {"0": 5}}
    """
    lines = text.split("\n")
    documents = [json.loads(line) for line in lines[_HEAD:]]
    kept = [{name: ends for name, ends in document.items() if name not in names} for document in documents]
    return "\n".join([*lines[:_HEAD], *map(json.dumps, kept)])


@contextmanager
def _errors(files: Files) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UnavailableError(
            f"the ids of topics can't be kept beside the query: {why}",
            where=files.location.uri,
            hint="start the joiner again once the cause is removed",
        ) from error


def _recorded_ids(files: Files) -> dict[str, str]:
    """The ids that a joiner wrote; none if the file is missing or can't be read."""
    try:
        document = json.loads(files.read(_TOPICS) or "{}")
        return {str(name): str(topic_id) for name, topic_id in document.items()}
    except (ValueError, AttributeError):
        return {}

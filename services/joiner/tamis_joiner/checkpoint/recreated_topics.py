"""Topics that were deleted and created again: the query reads them from their beginning.

Spark stores an offset for each topic partition, and knows a topic only by its name. In a topic that was
created again it skips the records up to the stored offset, or all records that are there. A plan that is
skipped doesn't come again, and the joiner would keep all later tuples waiting for it. So the joiner stores
the ids that Kafka gave to the topics, beside the query's directory. Where an id has changed, it removes the
topic from the offsets of the query's last batch. To Spark, its partitions are then new.

Some records may be read twice by this. That is safe for joins, because a tuple that appears twice is stored
once, and for queries that count, because they drop tuples whose places aren't greater than the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tamis.errors import UnavailableError
from tamis_joiner.checkpoint.location import Files

_RECORD = "tamis-topics.json"
_OFFSETS = "query/offsets"
# A version and Spark's settings, each in a line; the offsets of the sources follow.
_HEAD = 2

TopicIds = Mapping[str, str]
"""Kafka's id of each topic, by name."""


class KnownTopics:
    """The ids of the topics that the query of a checkpoint directory has read.

    Methods raise UnavailableError if the directory can't be read or written.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        with _errors(files):
            self._known = _recorded(files)

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
            self._files.replace(_RECORD, json.dumps(known))
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


def _recorded(files: Files) -> dict[str, str]:
    """The ids that a joiner wrote; none if the file is missing or can't be read."""
    try:
        document = json.loads(files.read(_RECORD) or "{}")
        return {str(name): str(topic_id) for name, topic_id in document.items()}
    except (ValueError, AttributeError):
        return {}

"""Facts that `tamis watch` follows in Kafka: definitions of alerts in plans, and silences."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError, UnavailableError
from tamis.messaging.silences import SILENCE, Silence, covers, decode
from tamis.messaging.topics import PLANS, SILENCES

if TYPE_CHECKING:
    from tamis.messaging.topic_reader import Record, TopicReader

_PREFIX = f"{SILENCE}/".encode()
# The wait before it looks again for a topic that it did not find or may not read.
_AGAIN_SECONDS = 5.0


@dataclass(frozen=True)
class DefinitionFacts:
    """The columns of an alert's rows and the positions in the keys of its alarms that are times, its severity
    and its labels.
    """

    row_times: frozenset[str] = frozenset()
    key_times: tuple[int, ...] = ()
    severity: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


UNKNOWN = DefinitionFacts()


class Definitions:
    """The definitions of alerts. Plans are read when a record has a definition that isn't known yet, each
    plan only once.
    """

    def __init__(self, config: Mapping[str, Any], say: Callable[[str], None]) -> None:
        """`say` gets the reason if the plans can't be read, once."""
        self._config, self._say = config, say
        self._known: dict[tuple[str, int | None], DefinitionFacts] = {}
        self._plans: dict[int, bytes] = {}  # those that were not decoded yet
        self._newest = 0
        self._failed = False  # reported once

    def of(self, alert: str, definition: int | None) -> DefinitionFacts:
        """The facts of an alert by the plan version that made its definition; None: the newest definition.
        Without any plan that has it, nothing is known.
        """
        key = alert, definition
        if key in self._known:
            return self._known[key]
        if definition is None or definition > self._newest:
            self._read()
        while key not in self._known and self._plans:
            self._decode(self._plans.pop(max(self._plans)))
        return self._known.setdefault(key, UNKNOWN)

    def _read(self) -> None:
        from tamis.messaging.topic_reader import TopicReader
        from tamis.plan.json_form import version_of

        found: dict[int, bytes] = {}
        try:
            with TopicReader(self._config, [PLANS]) as reader:
                for record in reader.snapshot():
                    try:
                        if record.value is not None and (version := version_of(record.value)) > self._newest:
                            found[version] = record.value
                    except InputError:
                        continue  # the services report records that can't be read
        except UnavailableError as error:
            if not self._failed:
                self._say(f"can't tell which columns are times: {error}")
            self._failed = True
            return
        self._plans |= found
        self._newest = max(self._plans, default=self._newest)

    def _decode(self, data: bytes) -> None:
        from tamis.plan.json_form import decode_plan
        from tamis.plan.time_columns import key_times, time_columns

        try:
            plan = decode_plan(data)
        except InputError:
            return
        for query in plan.queries:
            key = query.alert, query.version
            if key not in self._known:
                times = frozenset(time_columns(query))
                facts = DefinitionFacts(times, key_times(query, plan), query.severity, dict(query.labels))
                self._known[key] = facts
            self._known.setdefault((query.alert, None), self._known[key])


class Silences:
    """The silences in Kafka. Without the right to read them, or without their topic, there are none."""

    def __init__(self, config: Mapping[str, Any], say: Callable[[str], None]) -> None:
        """`say` gets the reason if silences can't be read though Kafka answers, once."""
        self._config, self._say = config, say
        self._found: dict[bytes, Silence] = {}
        self._reader: TopicReader | None = None
        self._again = 0.0  # when it tries to read them next
        self._failed = False  # reported once

    def follow(self) -> None:
        """Read them, or what has changed since the last call."""
        from tamis.messaging.topic_reader import MissingTopicError, TopicReader

        if self._reader is None and time.monotonic() < self._again:
            return
        reader = self._reader or TopicReader(self._config, [SILENCES])
        try:
            for record in reader.snapshot() if self._reader is None else reader.poll():
                self._take(record)
            self._reader = reader
        except UnavailableError as error:
            # The registry creates the topic, so nothing is silenced before. Others tell that Kafka is away.
            if reader.trouble is None and not isinstance(error, MissingTopicError) and not self._failed:
                self._say(f"can't tell what is silenced: {error}")
                self._failed = True
            self._again = time.monotonic() + _AGAIN_SECONDS
            self._found.clear()
            reader.close()
            self._reader = None

    def until(self, episode: Mapping[str, Any], at: int) -> int | None:
        """The end of the silences that cover an episode at a time; None if none does."""
        return max((one.until for one in self._found.values() if covers(one, episode, at)), default=None)

    def close(self) -> None:
        """End the connection."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _take(self, record: Record) -> None:
        if record.key is None or not record.key.startswith(_PREFIX):
            return
        self._found.pop(record.key, None)
        if record.value is None:
            return
        try:
            silence = decode(record.key, record.value)
        except ValueError:
            return  # the services report records that can't be read
        if isinstance(silence, Silence):
            self._found[record.key] = silence

"""The silences of the fleet, as `tamis watch` follows them in Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import UnavailableError
from tamis.messaging.silences import SILENCE, Silence, covers, decode
from tamis.messaging.topics import SILENCES

if TYPE_CHECKING:
    from tamis.messaging.topic_reader import Record, TopicReader

_PREFIX = f"{SILENCE}/".encode()
# The wait before it looks again for a topic that it did not find or may not read.
_AGAIN_SECONDS = 5.0


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

"""View of the silences in `tamis.silences`, kept up to date by a thread of its own.

The registry creates the topic. Before it does, and while the service may not read it, there are no silences:
a sink rather gets a notification too many.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from tamis.errors import UnavailableError
from tamis.messaging.connection import NOT_AUTHORIZED, Connection, NotAuthorizedError
from tamis.messaging.rights import READERS
from tamis.messaging.silences import HELD, Held, Silence, decode
from tamis.messaging.silences import SILENCE as SILENCE_KIND
from tamis.messaging.topic_reader import Record, TopicReader, UnreadableRecords
from tamis.messaging.topics import SILENCES
from tamis.telemetry import Metrics, get_logger
from tamis.telemetry.threads import WorkerThread

REQUEST_SECONDS = 5.0
# The wait before the service looks again for a topic that it did not find or may not read.
AGAIN_SECONDS = 5.0

log = get_logger("alerts.silences")


class SilenceView:
    """The silences of the fleet. `silences` is replaced as a whole, so that other threads may read it.

    `config` is the configuration of a client of confluent-kafka.
    """

    def __init__(self, config: Mapping[str, Any], metrics: Metrics | None = None) -> None:
        self._config = config
        self._unreadable = UnreadableRecords("alerts", metrics, log)
        self._reader: TopicReader | None = None
        self._found: dict[bytes, Silence] = {}
        self._stop = threading.Event()
        self._thread = WorkerThread("silences", self._run)
        self._said = ""
        self.silences: tuple[Silence, ...] = ()

    def start(self) -> None:
        """Read the silences, then follow them in the background. Raises UnavailableError."""
        self._open()
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError if the thread has ended by an error."""
        self._thread.check()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=REQUEST_SECONDS)
        if self._reader is not None:
            self._reader.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._reader is None:
                    self._stop.wait(AGAIN_SECONDS)
                    self._open()
                else:
                    self._take(self._reader.poll(0.2))
            except UnavailableError as error:
                self._say(f"silences can't be read: {error}")
                self._close()

    def _open(self) -> None:
        try:
            if not has_topic(self._config):
                self._say(f"there is no topic {SILENCES} yet, so nothing is silenced; the registry makes it")
                return
            self._reader = TopicReader(self._config, [SILENCES])
            self._found.clear()
            self._take(list(self._reader.snapshot()))
        except NotAuthorizedError as error:
            self._say(f"nothing is silenced: {error}")
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _take(self, records: list[Record]) -> None:
        changed = False
        for record in records:
            key = record.key or b""
            if not key.startswith(f"{SILENCE_KIND}/".encode()):
                continue
            changed = True
            self._found.pop(key, None)
            if record.value is None:
                continue
            try:
                silence = decode(key, record.value)
            except ValueError as error:
                self._unreadable.report(record, error)
                continue
            if isinstance(silence, Silence):
                self._found[key] = silence
        if changed:
            self.silences = tuple(self._found.values())

    def _say(self, what: str) -> None:
        if what != self._said:
            log.warning(what)
            self._said = what


def has_topic(config: Mapping[str, Any]) -> bool:
    """True if there is a topic of silences. Raises UnavailableError, and NotAuthorizedError if the client may
    not describe the topic.
    """
    consumer = Consumer({**config, "group.id": READERS})
    try:
        error = consumer.list_topics(SILENCES, timeout=REQUEST_SECONDS).topics[SILENCES].error
    except KafkaException as failed:
        raise UnavailableError(f"Kafka doesn't answer: {failed.args[0].str()}") from failed
    finally:
        consumer.close()
    if error is not None and error.code() in NOT_AUTHORIZED:
        raise Connection.of(config).error(error)
    return error is None


def read_held(config: Mapping[str, Any], sink: str, unreadable: UnreadableRecords) -> Iterator[Held]:
    """The held openings of a sink that are in Kafka now. Raises UnavailableError."""
    if not has_topic(config):
        return
    prefix, found = f"{HELD}/{sink}/".encode(), dict[bytes, Record]()
    # A transaction of the registry that is still open would hide records that were written after its begin.
    with TopicReader(config, [SILENCES], committed=False) as reader:
        for record in reader.snapshot():
            if record.key is None or not record.key.startswith(prefix):
                continue
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = record
    for record in found.values():
        try:
            held = decode(record.key, record.value or b"")
        except ValueError as error:
            unreadable.report(record, error)
            continue
        if isinstance(held, Held):
            yield held

"""Records that Kafka refuses permanently: they become dead letters, or files if Kafka refuses these too."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import orjson

from tamis.errors import UnavailableError
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.topics import DEAD_LETTERS
from tamis.telemetry.logs import get_logger
from tamis_edge.core.records import ANY_PARTITION, Record
from tamis_edge.publishing.in_flight import Sender
from tamis_edge.storage.disk import DIRECTORY_HINT, DiskError, Reserve, disk_fault


def size_of(record: Record) -> int:
    """The size of a record in bytes, as the limit of a topic counts it, without some overhead."""
    headers = sum(len(name) + len(value) for name, value in record.headers or ())
    return len(record.value) + len(record.key or b"") + headers


def letter_of(record: Record, reason: Reason, error: str, edge: str) -> Record:
    """The dead letter of a tuple of `edge`: the value that would have been published, with the tuple's own
    token.
    """
    letter = DeadLetter(record.value, "edge", record.topic, record.partition, -1, reason, error, edge)
    headers = letter.headers()
    return Record(record.token, DEAD_LETTERS, ANY_PARTITION, None, record.value, record.arrival, headers)


_log = get_logger("edge.publisher")

RETRY = 1.0  # seconds after the disk refused a file before the next attempt


class DeadLetterFiles:
    """A folder of dead letters that Kafka refuses, such as those that are too large. A file begins with a
    line of JSON, the headers, followed by the bytes.

    A file is named by the hash of its content, so a dead letter that is made again after a crash is kept only
    once.
    """

    def __init__(self, directory: Path, limit: int, reserve: Reserve | None = None) -> None:
        """`limit`: bytes of all files together. `reserve`: room for a letter on a full disk; while the
        reserve has no room, letters wait.
        """
        self._directory, self._limit, self._reserve = directory, limit, reserve
        self._bytes = sum(file.stat().st_size for file in directory.glob("*")) if directory.exists() else 0

    def keep(self, letter: Record) -> Path:
        """Write a dead letter. It is on disk when this returns.

        Raises:
            DiskError: the disk has no room for it now.
            UnavailableError: the folder is full, or can't be written.
        """
        headers = {name: value.decode() for name, value in letter.headers or ()}
        content = orjson.dumps(headers) + b"\n" + letter.value
        path = self._directory / blake2b(content, digest_size=16).hexdigest()
        if path.exists():
            return path
        if self._bytes + len(content) > self._limit:
            raise UnavailableError(
                "the folder of dead letters is full",
                where=str(self._directory),
                hint="take its files away and start the edge again; nothing is lost",
            )
        if self._reserve is None:
            self._write(path, content)
        elif not self._reserve.held:
            raise self._reserve.missing()
        else:
            self._reserve.used(lambda: self._write(path, content))
        self._bytes += len(content)
        return path

    def _write(self, path: Path, content: bytes) -> None:
        draft = path.with_suffix(".new")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            try:
                with draft.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                # A part of the file would only take up room.
                draft.unlink(missing_ok=True)
                raise
            draft.replace(path)
            folder = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise disk_fault(error, path, "can't keep a dead letter", DIRECTORY_HINT) from error


class WaitingLetters:
    """Dead letters that wait to be written to files, in order. Writes that the disk refuses are tried
    again.
    """

    def __init__(self, files: DeadLetterFiles, clock: Callable[[], float], kept: Callable[[], None]) -> None:
        """`clock`: monotonic seconds. `kept` is called for each dead letter that is in a file."""
        self._files, self._clock, self._kept = files, clock, kept
        self._letters: deque[tuple[Sender, Record, str]] = deque()
        self._retry_at: float | None = None

    def __bool__(self) -> bool:
        return bool(self._letters)

    @property
    def bytes(self) -> int:
        """The size of all dead letters that wait."""
        return sum(len(letter.value) for _, letter, _ in self._letters)

    def add(self, sender: Sender, letter: Record, reason: str) -> None:
        """Keep a dead letter that Kafka refuses."""
        self._letters.append((sender, letter, reason))
        self.keep()

    def keep(self) -> None:
        """Write the dead letters that wait to files. If the disk refuses one, the others wait behind it."""
        if self._retry_at is not None and self._clock() < self._retry_at:
            return
        while self._letters:
            sender, letter, reason = self._letters[0]
            try:
                path = self._files.keep(letter)
            except DiskError as error:
                if self._retry_at is None:
                    _log.error("the disk has no room for a dead letter: waiting for it", reason=str(error))
                self._retry_at = self._clock() + RETRY
                return
            self._letters.popleft()
            _log.error("Kafka refuses a dead letter, which was kept in a file", path=str(path), reason=reason)
            sender.safe(letter.token)
            # Counted after it is written: a reader of the metric may look for the file.
            self._kept()
        self._retry_at = None

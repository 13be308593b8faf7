"""What becomes of a record that Kafka refuses for good: a dead letter, or if refused once more a file."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

import orjson

from tamis.errors import UnavailableError
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.topics import DEAD_LETTERS
from tamis_edge.core.records import ANY_PARTITION, Record


def size_of(record: Record) -> int:
    """Bytes of a record as the limit of a topic counts them, but for some of overhead."""
    headers = sum(len(name) + len(value) for name, value in record.headers or ())
    return len(record.value) + len(record.key or b"") + headers


def letter_of(record: Record, reason: Reason, error: str) -> Record:
    """The dead letter of a tuple, whole as it would have been published, with the tuple's own token."""
    letter = DeadLetter(record.value, "edge", record.topic, record.partition, -1, reason, error)
    headers = letter.headers()
    return Record(record.token, DEAD_LETTERS, ANY_PARTITION, None, record.value, record.arrival, headers)


class LetterFiles:
    """A folder of dead letters that don't fit into Kafka: a line of JSON, their headers, and then the bytes.

    A file is named by what it holds: a letter that comes again after a crash is kept once.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        """`limit`: bytes of all files together."""
        self._directory, self._limit = directory, limit
        self._bytes = sum(file.stat().st_size for file in directory.glob("*")) if directory.exists() else 0

    def keep(self, letter: Record) -> Path:
        """Have a letter on disk when this returns.

        Raises:
            UnavailableError: the disk refuses it, or the folder is full.
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
        draft = path.with_suffix(".new")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            folder = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise UnavailableError(
                f"can't keep a dead letter: {error}",
                where=str(path),
                hint="check the data directory's permissions and free space",
            ) from error
        self._bytes += len(content)
        return path

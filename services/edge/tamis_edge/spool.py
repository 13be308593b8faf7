"""The spool: retained records that wait on disk while Kafka is away, first in first out over all shards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from tamis.errors import UnavailableError
from tamis_edge.core.records import Record
from tamis_edge.journal import open_database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, part INTEGER NOT NULL, key BLOB, value BLOB NOT
  NULL, arrival INTEGER NOT NULL, headers TEXT, shard TEXT, place INTEGER
);
"""


class Spool:
    """Belongs to one thread. A record stays until it is delivered; a crash before that sends it again."""

    def __init__(self, path: Path, limit: int) -> None:
        """`limit`: bytes of keys and values above which the spool counts as full."""
        self._path = path
        self._limit = limit
        self._db = open_database(path, _SCHEMA)
        if not any(column[1] == "place" for column in self._db.execute("PRAGMA table_info(records)")):
            # The file of an older release.
            self._db.execute("ALTER TABLE records ADD COLUMN shard TEXT")
            self._db.execute("ALTER TABLE records ADD COLUMN place INTEGER")
        self._taken = 0  # greatest id handed out in this life
        self._sizes: dict[int, int] = {}
        self._count()

    def _count(self) -> None:
        self.records: int
        self.bytes: int
        self._last: int
        self.records, self.bytes, self._last = self._db.execute(
            "SELECT count(*), coalesce(sum(length(value) + coalesce(length(key), 0)), 0),"
            " coalesce(max(id), 0) FROM records"
        ).fetchone()

    @property
    def full(self) -> bool:
        """Whether sources should pause. Records that are already decided are taken even so."""
        return bool(self.bytes >= self._limit)

    @property
    def waiting(self) -> bool:
        """Whether there are records that `take` has not handed out: whatever is new has to go behind them."""
        return self._taken < self._last

    def give_up(self, shard: str, done: int) -> None:
        """Forget records of a shard from the place `done` on, in a new life before any is taken: its source
        gives these readings again.

        They would go out ahead of what was on its way to Kafka when the edge died, which comes again with
        them: out of the order on which counting rests (`docs/decisions/0027`).
        """
        self._transact("DELETE FROM records WHERE shard = ? AND place >= ?", [(shard, done)])
        self._count()

    def append(self, shard: str, records: Sequence[Record], places: Sequence[int]) -> None:
        """Have records of a shard on disk, in order, when this returns; `places`: where in its source the
        readings of each stood, the first of them.

        Raises:
            UnavailableError: the disk refuses them; none was taken.
        """
        rows = [
            (
                record.topic,
                record.partition,
                record.key,
                record.value,
                record.arrival,
                _headers_out(record.headers),
                shard,
                place,
            )
            for record, place in zip(records, places, strict=True)
        ]
        insert = (
            "INSERT INTO records (topic, part, key, value, arrival, headers, shard, place)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._transact(insert, rows)
        self._last = self._db.execute("SELECT max(id) FROM records").fetchone()[0]
        self.records += len(rows)
        self.bytes += sum(len(record.value) + len(record.key or b"") for record in records)

    def take(self, limit: int, size: int) -> list[Record]:
        """The next records in order, each once a life: at most `limit`, and until they have `size` bytes;
        `token` is what `delivered` wants.
        """
        found = self._db.execute(
            "SELECT id, topic, part, key, value, arrival, headers FROM records WHERE id > ?"
            " ORDER BY id LIMIT ?",
            (self._taken, limit),
        )
        records: list[Record] = []
        for *row, headers in found:
            record = Record._make([*row, _headers_in(headers)])
            records.append(record)
            self._sizes[record.token] = length = len(record.value) + len(record.key or b"")
            size -= length
            if size <= 0:
                break
        found.close()
        if records:
            self._taken = records[-1].token
        return records

    def delivered(self, tokens: Iterable[int]) -> None:
        """Forget records that are safe in Kafka."""
        gone = list(tokens)
        self._transact("DELETE FROM records WHERE id = ?", [(token,) for token in gone])
        self.records -= len(gone)
        self.bytes -= sum(self._sizes.pop(token) for token in gone)

    def close(self) -> None:
        """Close the database; what was not delivered stays."""
        self._db.close()

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise UnavailableError(
                f"can't write: {error}", where=str(self._path), hint="check the disk"
            ) from error


def _headers_out(headers: list[tuple[str, bytes]] | None) -> str | None:
    return (
        None
        if headers is None
        else orjson.dumps([(name, value.decode()) for name, value in headers]).decode()
    )


def _headers_in(text: str | None) -> list[tuple[str, bytes]] | None:
    return None if text is None else [(name, value.encode()) for name, value in orjson.loads(text)]

"""The spool: retained records that wait on disk while Kafka is away, first in, first out over all shards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from tamis_edge.core.records import Record
from tamis_edge.storage.database import give_back, open_database, roll_back
from tamis_edge.storage.disk import Reserve, disk_fault

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, part INTEGER NOT NULL, key BLOB, value BLOB NOT
  NULL, arrival INTEGER NOT NULL, headers TEXT, shard TEXT, place INTEGER
);
"""


class Spool:
    """The spool of one edge; it is used by one thread. A record stays until it is delivered. After a crash
    before that, the record is sent again.
    """

    def __init__(self, path: Path, limit: int, reserve: Reserve | None = None) -> None:
        """`limit`: bytes of keys and values above which the spool counts as full."""
        self._path = path
        self.limit = limit
        self._reserve = reserve or Reserve(path.with_name("reserve"))
        self._db = open_database(path, _SCHEMA)
        if not any(column[1] == "place" for column in self._db.execute("PRAGMA table_info(records)")):
            # The file of an older release.
            self._db.execute("ALTER TABLE records ADD COLUMN shard TEXT")
            self._db.execute("ALTER TABLE records ADD COLUMN place INTEGER")
        self._taken = 0  # greatest id that `take` has returned since the start
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
        """True if sources should pause. Records that are already decided are accepted even then."""
        return bool(self.bytes >= self.limit)

    @property
    def waiting(self) -> bool:
        """True if there are records that `take` has not returned yet. New records must be added after
        them.
        """
        return self._taken < self._last

    def delete_from(self, shard: str, done: int, number: int | None = None) -> None:
        """Delete a shard's records from the place `done` on, and those of watched streams from `number` on.
        It is called at the start, before any record is taken.

        The source delivers their readings again. Other readings were in flight to Kafka when the edge died
        and are delivered again, too. If the spooled records stayed, they would be sent before those, out of
        the order on which counting relies (`docs/decisions/0027`).
        """
        # Records of watched streams have places below 0: see `ShardRun.place`.
        last = -(2**63) if number is None else ~number
        self._delete(
            "DELETE FROM records WHERE shard = ? AND (place >= ? OR place <= ?)", [(shard, done, last)]
        )
        self._count()

    def append(self, shard: str, records: Sequence[Record], places: Sequence[int]) -> None:
        """Write records of a shard, in order. They are on disk when this returns. `places`: for each, the
        position of its first reading (`ShardRun.place`).

        Raises:
            DiskError: the disk refuses them; none was written.
        """
        if not self._reserve.held:
            raise self._reserve.missing()
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
        """The next records in order, each once since the start: at most `limit`, and until they have `size`
        bytes. `delivered` takes their tokens.
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
        """Forget records that are safe in Kafka.

        Raises:
            DiskError: the disk refuses even that; ask again later.
        """
        gone = list(tokens)
        self._delete("DELETE FROM records WHERE id = ?", [(token,) for token in gone])
        self.records -= len(gone)
        self.bytes -= sum(self._sizes.pop(token) for token in gone)

    def give_back(self) -> None:
        """Return the room of deleted records to the disk."""
        give_back(self._db)

    def close(self) -> None:
        """Close the database. Records that were not delivered stay in it."""
        self._db.close()

    def _delete(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Delete records, using the reserve if the disk has no other room."""
        self._reserve.used(lambda: self._transact(statement, rows))

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            roll_back(self._db)
            raise disk_fault(error, self._path) from error


def _headers_out(headers: list[tuple[str, bytes]] | None) -> str | None:
    return (
        None
        if headers is None
        else orjson.dumps([(name, value.decode()) for name, value in headers]).decode()
    )


def _headers_in(text: str | None) -> list[tuple[str, bytes]] | None:
    return None if text is None else [(name, value.encode()) for name, value in orjson.loads(text)]

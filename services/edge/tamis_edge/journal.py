"""The journal: what MQTT and HTTP hand over, safe on disk before it is acknowledged, and an offset log
afterwards.

Rows of a shard are numbered from 0 without gaps. A shard's commit (see `core.commit`) lies beside its rows;
rows before its `done` are deleted with it, in one transaction. One thread writes: all that waits when it
comes round shares one transaction, so that many small requests cost one synchronisation with the disk.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import UnavailableError
from tamis.telemetry.threads import WorkerThread
from tamis_edge.core.commit import Commit

_SCHEMA = """
CREATE TABLE IF NOT EXISTS shards (
  id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, next INTEGER NOT NULL DEFAULT 0,
  done INTEGER, high INTEGER, version INTEGER, activation INTEGER, final INTEGER NOT NULL DEFAULT 0,
  born INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS readings (
  shard INTEGER NOT NULL, seq INTEGER NOT NULL, arrival INTEGER NOT NULL, payload BLOB NOT NULL,
  PRIMARY KEY (shard, seq)
) WITHOUT ROWID;
"""


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """A database whose transactions survive the machine's crash, not only the process's.

    Raises:
        UnavailableError: the file can't be opened or is not a database.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(schema)
    except (OSError, sqlite3.Error) as error:
        raise UnavailableError(
            f"can't open the database: {error}",
            where=str(path),
            hint="check the data directory's permissions and free space",
        ) from error
    return db


@dataclass(frozen=True, slots=True)
class Reading:
    """One journalled payload: its offset in the shard and when it arrived (wall clock, microseconds)."""

    seq: int
    arrival: int
    payload: bytes


class JournalFullError(UnavailableError):
    """The journal has reached its limit: Kafka has been away, or no plan lists the shard."""


@dataclass(frozen=True)
class _Job:
    write: Callable[[sqlite3.Connection], None]
    done: Future[None]
    size: int  # bytes of payloads that it writes


class Journal:
    """Thread-safe, except that `read` belongs to one thread."""

    def __init__(self, path: Path, limit: int) -> None:
        """`limit`: greatest sum of payload bytes that wait."""
        self._path = path
        self._limit = limit
        self._lock = threading.Lock()
        self._write = open_database(path, _SCHEMA)
        if not any(column[1] == "born" for column in self._write.execute("PRAGMA table_info(shards)")):
            # The file of an older release.
            self._write.execute("ALTER TABLE shards ADD COLUMN born INTEGER NOT NULL DEFAULT 0")
        self._read = open_database(path, _SCHEMA)
        self._reload()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._queued = 0  # bytes that were taken and aren't on disk yet
        self._over = False
        self._thread = WorkerThread("journal", self._run)
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError where its thread has died."""
        self._thread.check()

    def append(self, shard: str, payloads: Sequence[bytes], arrival: int) -> Future[None]:
        """Journal payloads in order; the future is done once they are safe.

        Raises:
            JournalFullError: there is no room for them; nothing was taken.
        """
        size = sum(map(len, payloads))
        with self._lock:
            if self._bytes + self._queued + size > self._limit:
                raise JournalFullError(
                    "the journal is full",
                    where=str(self._path),
                    hint="it empties once Kafka can be reached and the plan lists the shard",
                )
            self._queued += size

        def write(db: sqlite3.Connection) -> None:
            number = self._shard(db, shard)
            first = self._next[shard]
            rows = [(number, first + i, arrival, payload) for i, payload in enumerate(payloads)]
            db.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", rows)
            db.execute("UPDATE shards SET next = ? WHERE id = ?", (first + len(rows), number))
            with self._lock:
                self._next[shard] = first + len(rows)
                self._rows[shard] = self._rows.get(shard, 0) + len(rows)

        return self._submit(write, size)

    def commit(self, shard: str, commit: Commit, final: bool = False) -> Future[None]:
        """Keep a shard's commit and forget the rows that it is done with; the future says when it is safe."""

        def write(db: sqlite3.Connection) -> None:
            number = self._shard(db, shard)
            gone = "FROM readings WHERE shard = ? AND seq < ?"
            count, size = db.execute(
                f"SELECT count(*), coalesce(sum(length(payload)), 0) {gone}", (number, commit.done)
            ).fetchone()
            if count:
                db.execute(f"DELETE {gone}", (number, commit.done))
            db.execute(
                "UPDATE shards SET done = ?, high = ?, version = ?, activation = ?, born = ?, final = ?"
                " WHERE id = ?",
                (commit.done, commit.high, commit.version, commit.activation, commit.born, final, number),
            )
            with self._lock:
                self._rows[shard] = self._rows.get(shard, 0) - count
                self._bytes -= size

        return self._submit(write)

    def committed(self, shard: str) -> tuple[Commit, bool]:
        """The shard's commit, and whether its final records were sent; the beginning where it has none."""
        row = self._read.execute(
            "SELECT done, high, version, activation, born, final FROM shards WHERE name = ?", (shard,)
        ).fetchone()
        if row is None or row[0] is None:
            return Commit(), False
        return Commit(*row[:5]), bool(row[5])

    def read(self, shard: str, first: int, limit: int, size: int) -> list[Reading]:
        """Rows from offset `first` on: at most `limit`, and until they have `size` bytes."""
        number = self._ids.get(shard)
        if number is None or self.end(shard) <= first:
            return []
        rows = self._read.execute(
            "SELECT seq, arrival, payload FROM readings WHERE shard = ? AND seq >= ? ORDER BY seq LIMIT ?",
            (number, first, limit),
        )
        found = []
        for row in rows:
            found.append(Reading(*row))
            size -= len(found[-1].payload)
            if size <= 0:
                break
        rows.close()
        return found

    def end(self, shard: str) -> int:
        """The offset that the shard's next row gets."""
        return self._next.get(shard, 0)

    def shards(self) -> list[str]:
        """Every shard that has rows or a commit."""
        return list(self._ids)

    def rows(self, shard: str) -> int:
        """How many rows of the shard wait."""
        return self._rows.get(shard, 0)

    @property
    def room(self) -> int:
        """How many bytes still fit."""
        return self._limit - self._bytes - self._queued

    def close(self) -> None:
        """Finish what was handed in, and close."""
        with self._lock:
            self._over = True
            self._jobs.put(None)
        self._thread.join()
        self._write.close()
        self._read.close()

    def _shard(self, db: sqlite3.Connection, name: str) -> int:
        if name not in self._ids:
            cursor = db.execute("INSERT INTO shards (name) VALUES (?)", (name,))
            assert cursor.lastrowid is not None
            self._next[name] = 0
            self._ids[name] = cursor.lastrowid
        return self._ids[name]

    def _reload(self) -> None:
        """What is known of the shards, as it is on disk."""
        shards = self._write.execute("SELECT name, id, next FROM shards").fetchall()
        names = {number: name for name, number, _ in shards}
        sizes = "SELECT shard, count(*), sum(length(payload)) FROM readings GROUP BY shard"
        found = self._write.execute(sizes).fetchall()
        with self._lock:
            self._ids: dict[str, int] = {name: number for name, number, _ in shards}
            self._next: dict[str, int] = {name: following for name, _, following in shards}
            self._rows: dict[str, int] = {names[number]: count for number, count, _ in found}
            self._bytes: int = sum(size for _, _, size in found)

    def _submit(self, write: Callable[[sqlite3.Connection], None], size: int = 0) -> Future[None]:
        job = _Job(write, Future(), size)
        with self._lock:
            # Nobody would ever answer what is handed in after the end.
            if not self._over:
                self._jobs.put(job)
                return job.done
            self._queued -= size
        job.done.set_exception(self._dead())
        return job.done

    def _run(self) -> None:
        batch: list[_Job] = []
        try:
            while job := self._jobs.get():
                batch = [job]
                last = False
                while not self._jobs.empty():
                    more = self._jobs.get()
                    if more is None:
                        last = True
                        break
                    batch.append(more)
                self._transact(batch)
                if last:
                    return
        finally:
            with self._lock:
                self._over = True
                while not self._jobs.empty():
                    if (left := self._jobs.get()) is not None:
                        batch.append(left)
            for job in batch:
                if not job.done.done():
                    job.done.set_exception(self._dead())

    def _transact(self, batch: list[_Job]) -> None:
        size = sum(job.size for job in batch)
        try:
            self._write.execute("BEGIN IMMEDIATE")
            for job in batch:
                job.write(self._write)
            self._write.execute("COMMIT")
        except sqlite3.Error as error:
            if self._write.in_transaction:
                self._write.execute("ROLLBACK")
            failure = UnavailableError(f"can't write: {error}", where=str(self._path), hint="check the disk")
            self._reload()
            with self._lock:
                self._queued -= size
            for job in batch:
                job.done.set_exception(failure)
            return
        with self._lock:
            self._queued -= size
            self._bytes += size
        for job in batch:
            job.done.set_result(None)

    def _dead(self) -> UnavailableError:
        return UnavailableError("the journal takes nothing any more", where=str(self._path))

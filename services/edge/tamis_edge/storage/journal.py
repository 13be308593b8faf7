"""The journal: readings of MQTT and HTTP, safe on disk before they are acknowledged.

It is an offset log: the rows of a shard are numbered from 0 without gaps. A shard's commit (see
`core.commit`) is stored beside its rows; rows before its `done` are deleted with it, in one transaction.
One thread writes. All jobs that wait when it comes round share one transaction, so that many small requests
cost one synchronisation with the disk.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from tamis.errors import UnavailableError
from tamis.operators.cuts.cut import CutsCommit
from tamis.telemetry.threads import WorkerThread
from tamis_edge.core.commit import Commit, History, WatchedCommit
from tamis_edge.storage.database import give_back, open_database, roll_back
from tamis_edge.storage.disk import DiskError, Reserve, disk_fault

RETRY = 1.0  # seconds after the disk refused readings in which no more are asked for

_SCHEMA = """
CREATE TABLE IF NOT EXISTS shards (
  id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, next INTEGER NOT NULL DEFAULT 0,
  done INTEGER, high INTEGER, version INTEGER, activation INTEGER, final INTEGER NOT NULL DEFAULT 0,
  born INTEGER NOT NULL DEFAULT 0, read INTEGER NOT NULL DEFAULT 0, watched TEXT, history TEXT
);
CREATE TABLE IF NOT EXISTS readings (
  shard INTEGER NOT NULL, seq INTEGER NOT NULL, arrival INTEGER NOT NULL, payload BLOB NOT NULL,
  PRIMARY KEY (shard, seq)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """One payload in the journal: its offset in the shard, and its arrival (wall clock, microseconds)."""

    seq: int
    arrival: int
    payload: bytes


class JournalFullError(UnavailableError):
    """The journal is full: Kafka has been away for long, or no plan lists the shard."""


@dataclass(frozen=True)
class _Job:
    write: Callable[[sqlite3.Connection], None]
    done: Future[None]
    size: int  # bytes of payloads that it adds; 0 of a commit


class Journal:
    """Thread-safe, except that `read` and `give_back` belong to one thread."""

    def __init__(self, path: Path, limit: int, reserve: Reserve | None = None) -> None:
        """`limit`: the greatest number of payload bytes that may wait."""
        self._path = path
        self._limit = limit
        self._reserve = reserve or Reserve(path.with_name("reserve"))
        self._refused_at = -RETRY  # when the disk last refused readings, monotonic seconds
        self._lock = threading.Lock()
        self._write = open_database(path, _SCHEMA)
        known = {column[1] for column in self._write.execute("PRAGMA table_info(shards)")}
        for column in ("born", "read"):
            if column not in known:  # the file of an older release
                self._write.execute(f"ALTER TABLE shards ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
        for column in ("watched", "history", "cuts"):
            if column not in known:
                self._write.execute(f"ALTER TABLE shards ADD COLUMN {column} TEXT")
        try:
            self._read = open_database(path, _SCHEMA)
        except UnavailableError:
            self._write.close()
            raise
        self._reload()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._queued = 0  # bytes that were taken and aren't on disk yet
        self._over = False
        self._thread = WorkerThread("journal", self._run)
        self._thread.start()

    def check(self) -> None:
        """Raises DeadThreadError if its thread has died."""
        self._thread.check()

    def append(self, shard: str, payloads: Sequence[bytes], arrival: int) -> Future[None]:
        """Add payloads in order; the future is done once they are safe.

        Raises:
            JournalFullError: there is no room for them; none was added.
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
        """Store a shard's commit and delete the rows before it; the future is done once it is safe."""

        def write(db: sqlite3.Connection) -> None:
            number = self._shard(db, shard)
            gone = "FROM readings WHERE shard = ? AND seq < ?"
            count, size = db.execute(
                f"SELECT count(*), coalesce(sum(length(payload)), 0) {gone}", (number, commit.done)
            ).fetchone()
            if count:
                db.execute(f"DELETE {gone}", (number, commit.done))
            db.execute(
                "UPDATE shards SET done = ?, high = ?, version = ?, activation = ?, born = ?, read = ?,"
                " watched = ?, history = ?, cuts = ?, final = ? WHERE id = ?",
                (
                    commit.done,
                    commit.high,
                    commit.version,
                    commit.activation,
                    commit.born,
                    commit.read,
                    _with_place(commit, None if commit.watched is None else astuple(commit.watched)),
                    None if commit.history is None else orjson.dumps(astuple(commit.history)).decode(),
                    _with_place(commit, None if commit.cuts is None else commit.cuts.to_json()),
                    final,
                    number,
                ),
            )
            with self._lock:
                self._rows[shard] = self._rows.get(shard, 0) - count
                self._bytes -= size

        return self._submit(write)

    def committed(self, shard: str) -> tuple[Commit, bool]:
        """The shard's commit, and whether its final records were sent; the commit is `Commit()` if the shard
        has none.
        """
        row = self._read.execute(
            "SELECT done, high, version, activation, born, read, watched, history, cuts, final FROM shards"
            " WHERE name = ?",
            (shard,),
        ).fetchone()
        if row is None or row[0] is None:
            return Commit(), False
        *fields, watched, history, cuts, final = row
        commit = Commit(*fields)
        if history is not None:
            commit = replace(commit, history=History(*orjson.loads(history)))
        if (of_watched := _of_place(commit, watched)) is not None:
            commit = replace(commit, watched=WatchedCommit(*of_watched))
        if (of_cuts := _of_place(commit, cuts)) is not None:
            commit = replace(commit, cuts=CutsCommit.from_json(of_cuts))
        return commit, bool(final)

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

    def give_back(self) -> None:
        """Return the room of deleted rows to the disk."""
        give_back(self._read)

    def end(self, shard: str) -> int:
        """The offset that the shard's next row gets."""
        return self._next.get(shard, 0)

    def shards(self) -> list[str]:
        """Every shard that has rows or a commit."""
        return list(self._ids)

    def rows(self, shard: str) -> int:
        """The number of rows of the shard that wait to be decided."""
        return self._rows.get(shard, 0)

    @property
    def room(self) -> int:
        """The number of bytes that still fit."""
        return self._limit - self._bytes - self._queued

    @property
    def refused(self) -> bool:
        """True if the disk has just refused readings."""
        return time.monotonic() - self._refused_at < RETRY

    def close(self) -> None:
        """Finish the jobs that were submitted, and close."""
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
        """Read the state of all shards from the disk."""
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
            # The future of a job that comes after the end would never be done.
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
        """Perform jobs in one transaction.

        If the disk has no room for them, only the commits among them are performed, if necessary in the
        reserve: commits delete rows.
        """
        added, commits = [job for job in batch if job.size], [job for job in batch if not job.size]
        no_room = bool(added) and not self._reserve.held
        failure = self._reserve.missing() if no_room else self._perform(batch)
        if isinstance(failure, DiskError) and added:
            self._refused_at = time.monotonic()
            self._settle(added, failure)
            batch, failure = commits, self._perform(commits)
        if isinstance(failure, DiskError) and self._reserve.release():
            failure = self._perform(batch)
        self._settle(batch, failure)

    def _perform(self, batch: list[_Job]) -> UnavailableError | None:
        """Perform jobs in one transaction. If it fails, returns the reason and changes nothing."""
        if not batch:
            return None
        try:
            self._write.execute("BEGIN IMMEDIATE")
            for job in batch:
                job.write(self._write)
            self._write.execute("COMMIT")
        except sqlite3.Error as error:
            roll_back(self._write)
            self._reload()
            return disk_fault(error, self._path)
        return None

    def _settle(self, jobs: list[_Job], failure: UnavailableError | None) -> None:
        size = sum(job.size for job in jobs)
        with self._lock:
            self._queued -= size
            if failure is None:
                self._bytes += size
        for job in jobs:
            if failure is None:
                job.done.set_result(None)
            else:
                job.done.set_exception(failure)

    def _dead(self) -> UnavailableError:
        return UnavailableError("the journal is closed, or its thread has ended", where=str(self._path))


def _with_place(commit: Commit, fields: Sequence[Any] | None) -> str | None:
    """A part of a commit as text, with the place of the commit that it belongs to."""
    return None if fields is None else orjson.dumps([commit.done, commit.read, *fields]).decode()


def _of_place(commit: Commit, text: str | None) -> list[Any] | None:
    """The part that `_with_place` has written; None if an earlier release, which doesn't know it, has left it
    of another commit.
    """
    if text is None:
        return None
    done, read, *fields = orjson.loads(text)
    return fields if (done, read) == (commit.done, commit.read) else None

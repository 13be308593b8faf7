"""SQLite databases whose transactions survive a crash, and which return free pages to the disk."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from tamis.errors import InputError
from tamis_edge.storage.disk import DIRECTORY_HINT, disk_fault

FORMAT = 1  # of the edge's databases; 0: of a release before the number was written
_FEW = 64  # pages of a database that is rewritten in no time
GIVE_BACK = 2_000  # pages that a database gives back at once: some ten milliseconds' work


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Open a database whose transactions survive a crash of the machine, not only of the process.

    Raises:
        DiskError: the disk has no room, or the file can't be opened.
        UnavailableError: the file is not a database.
        InputError: a newer release has written the file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    except (OSError, sqlite3.Error) as error:
        raise disk_fault(error, path, "can't open the database", DIRECTORY_HINT) from error
    try:
        _check_format(db, path)
        _enable_vacuum(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(schema)
        db.execute(f"PRAGMA user_version={FORMAT}")
    except sqlite3.Error as error:
        db.close()
        raise disk_fault(error, path, "can't open the database", DIRECTORY_HINT) from error
    return db


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        db.close()
        raise InputError(
            f"the file has format {found}; this edge reads {FORMAT}",
            where=str(path),
            hint="start the newer release that wrote it; nothing in the file was changed",
        )


def roll_back(db: sqlite3.Connection) -> None:
    """End the failed transaction, unless SQLite has done so."""
    if db.in_transaction:
        with suppress(sqlite3.Error):  # the next transaction fails in its place
            db.execute("ROLLBACK")


def give_back(db: sqlite3.Connection) -> None:
    """Return free pages of a database, and the length of its log, to the disk. This needs some room itself;
    without room nothing changes.
    """
    with suppress(sqlite3.Error):
        # Each step of the statement gives one page back: `execute` would take the first only.
        db.executescript(f"PRAGMA incremental_vacuum({GIVE_BACK})")
    with suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _enable_vacuum(db: sqlite3.Connection) -> None:
    """Let a database return free pages. A database of an older release can do so once it is empty."""
    (before,) = db.execute("PRAGMA auto_vacuum").fetchone()
    if before:
        return
    db.execute("PRAGMA auto_vacuum=INCREMENTAL")
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (free,) = db.execute("PRAGMA freelist_count").fetchone()
    if 0 < pages - free <= _FEW:
        db.execute("VACUUM")

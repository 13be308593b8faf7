"""The disk of an edge, which may be full: its errors, and a file that keeps room free for deletions.

Records that wait on disk are deleted once Kafka has them, and a database needs room to delete. On a full
disk an edge could neither accept readings nor delete those that Kafka has. Therefore a file of some
megabytes lies beside the databases. If a deletion or a commit finds no room, that file is emptied. Until the
disk has room for the file again, nothing is added to the databases, and they return their free pages to the
disk.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tamis.errors import UnavailableError
from tamis.telemetry.logs import get_logger

# Primary codes of SQLite, and of the system, for a disk without room and for a write that failed.
_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


DIRECTORY_HINT = "check the data directory's permissions and free space"


class DiskError(UnavailableError):
    """The disk refuses to write now. It may accept the same write later."""


def disk_fault(
    error: Exception, path: Path, what: str = "can't write", hint: str = "check the disk's free space"
) -> UnavailableError:
    """The Tamis error for something that failed at a file: a DiskError if the disk is the cause."""
    kind = DiskError if _is_of_the_disk(error, path) else UnavailableError
    return kind(f"{what}: {error}", where=str(path), hint=hint)


def _is_of_the_disk(error: Exception, path: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CANTOPEN and path.parent.exists():
        # No permission, or no room for a file: SQLite doesn't tell them apart.
        found = os.statvfs(path.parent)
        return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)
    return code in _CODES


_log = get_logger("edge.disk")

T = TypeVar("T")

# Bytes. SQLite checkpoints a log of 4 MB (1,000 pages). On a full disk each of the two databases may need as
# much for its log, or to take in what the log holds, and as much again for two of its transactions.
RESERVE = 16 * 2**20


class Reserve:
    """A file that keeps room on the disk. Thread-safe."""

    def __init__(self, path: Path, size: int = RESERVE) -> None:
        self._path, self._size = path, size
        self._lock = threading.Lock()
        self._missed = False  # the log says that there is no reserve
        self.held = False
        if size < RESERVE:
            _log.warning(
                "the reserve may be too small to delete records on a full disk",
                path=str(path),
                bytes=size,
                hint=f"set limits.reserve to {RESERVE} or more, or leave it out",
            )
        self.hold()

    def hold(self) -> bool:
        """Take the room if the disk has it; returns True if it is held now."""
        with self._lock:
            if not self.held:
                self.held = self._take()
            missed, self._missed = self._missed, not self.held
        if missed and self.held:
            _log.info("the disk has room again for the reserve", path=str(self._path))
        elif not missed and not self.held:
            _log.error("the disk has no room for the reserve", path=str(self._path), needed=self._size)
        return self.held

    def release(self) -> bool:
        """Free the room for a write that can't wait; returns False if there was none."""
        with self._lock:
            if not self.held:
                return False
            self.held = False
            self._missed = True
            try:
                os.truncate(self._path, 0)
            except FileNotFoundError:
                return False
        _log.warning("the disk is full: the reserve is used", path=str(self._path))
        return True

    def missing(self) -> DiskError:
        """The error of a write that needs more room while there is no reserve."""
        return DiskError(
            f"the disk has no room for {self._size} bytes in reserve",
            where=str(self._path),
            hint="free disk space, or set a smaller limits.reserve",
        )

    def used(self, work: Callable[[], T]) -> T:
        """Do work that must be possible on a full disk. If the disk has no other room, the reserve is freed
        for it.

        Raises:
            DiskError: there is no room even so.
        """
        try:
            return work()
        except DiskError:
            if not self.release():
                raise
            return work()

    def _take(self) -> bool:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, self._size)
                except OSError:
                    # A part of the file would only take up room.
                    os.ftruncate(file.fileno(), 0)
                    raise
        except OSError:
            return False
        return True

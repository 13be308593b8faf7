"""Errors of the disk: those that may pass because the disk is only full, and the others."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from tamis.errors import UnavailableError

# Primary codes of SQLite, and of the system, for a disk without room and for a write that failed.
_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


class DiskError(UnavailableError):
    """The disk refuses to write now. It may accept the same write later."""


def refusal(error: sqlite3.Error, path: Path) -> UnavailableError:
    """The Tamis error for a failed statement: a DiskError if the disk is the cause."""
    kind = DiskError if _is_of_the_disk(error, path) else UnavailableError
    return kind(f"can't write: {error}", where=str(path), hint="check the disk's free space")


def not_written(error: OSError, path: Path) -> UnavailableError:
    """The Tamis error for a dead letter's file that can't be written: a DiskError if the disk caused it."""
    kind = DiskError if _is_of_the_disk(error, path) else UnavailableError
    return kind(
        f"can't keep a dead letter: {error}",
        where=str(path),
        hint="check the data directory's permissions and free space",
    )


def not_opened(error: Exception, path: Path) -> UnavailableError:
    kind = DiskError if _is_of_the_disk(error, path) else UnavailableError
    return kind(
        f"can't open the database: {error}",
        where=str(path),
        hint="check the data directory's permissions and free space",
    )


def _is_of_the_disk(error: Exception, path: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CANTOPEN and path.parent.exists():
        # No permission, or no room for a file: SQLite doesn't tell them apart.
        found = os.statvfs(path.parent)
        return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)
    return code in _CODES

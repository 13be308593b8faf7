"""Free disk space of a service's directory, for its readiness."""

from __future__ import annotations

import os
from pathlib import Path

LEAST = 2**20  # bytes; with less, the next write is likely to fail


def disk_trouble(folder: Path, least: int = LEAST) -> str | None:
    """The reason why files in a folder can't be written; None if the disk has room.

    >>> disk_trouble(Path("/no/such/folder"))
    "/no/such/folder can't be read: No such file or directory"
    """
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return f"{folder} can't be read: {error.strerror}"
    free = found.f_bavail * found.f_frsize
    if free < least:
        return f"{folder} has {free} bytes left; make room on the disk"
    return None

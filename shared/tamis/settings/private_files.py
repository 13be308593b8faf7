"""Files of services that only their own user can read, whatever the umask of the shell is."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger("tamis.settings")

OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Rights of the group and of all other users."""


def keep_new_files_private() -> None:
    """Give no other user a right to the files and directories that this process and its children make."""
    os.umask(OTHERS)


def private_directory(path: Path) -> Path:
    """Make a directory, with its parents, that only this user may enter. One that exists, such as that of an
    earlier version, loses the rights of others, unless it isn't the service's own: one of another user, one
    that all users share, or one with files of other users.
    """
    path.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_mode & OTHERS and not found.st_mode & stat.S_ISVTX and _is_own(path, found.st_uid):
        path.chmod(found.st_mode & stat.S_IRWXU)
        _log.info("%s: other users may no longer enter this directory", path)
    return path


def _is_own(path: Path, owner: int) -> bool:
    if owner != os.geteuid():
        return False
    with os.scandir(path) as entries:
        return all(entry.stat(follow_symlinks=False).st_uid == owner for entry in entries)

"""Permitted files of tables and patterns: by directory, and regular files of a known size only."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from tamis.errors import InputError, RefusedError

SETTING = "TAMIS_TABLES"

# A static relation is read whole, and every evaluator keeps all of it.
MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class FileAccess:
    """The files that tables and patterns may have: those inside some directories, after links are resolved.
    With None, all files that the process can read. A single file may stand for a directory.

    `none` and `hint`: the reason and the advice if there are no directories.
    """

    directories: tuple[str, ...] | None = None
    none: str = field(default=f"files can't be read here: {SETTING} isn't set", repr=False)
    hint: str = field(
        default=f"set {SETTING} to the directory of their files, for the registry and the joiner", repr=False
    )

    @staticmethod
    def from_setting(setting: str) -> FileAccess:
        """The access that TAMIS_TABLES gives: directories, separated as in PATH.

        >>> FileAccess.from_setting("")
        FileAccess(directories=())
        """
        return FileAccess(tuple(directory for directory in setting.split(os.pathsep) if directory))

    def resolve(self, path: str, where: str) -> str:
        """The regular file at a path, with links resolved.

        Raises RefusedError for a file outside of the directories; the message is the same whether or not the
        file exists. Raises InputError for an address, a missing file, or a file without a known size.
        """
        _check_local(path, where)
        resolved = self._resolved(path, where)
        try:
            status = os.stat(resolved)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            hint = "check the path; a relative path begins at the working directory"
            raise InputError(f"the file can't be read: {reason}", where=where, hint=hint) from error
        if not stat.S_ISREG(status.st_mode):
            # A device or a pipe may return data without end, or block for ever.
            raise InputError("isn't a regular file", where=where, hint="name a CSV or Parquet file")
        if status.st_size == 0:
            # The files of /proc have this size, too, whatever they contain.
            raise InputError("the file is empty", where=where, hint="name a CSV or Parquet file with rows")
        if status.st_size > MOST_BYTES:
            hint = "keep only the rows that the queries need, or send them as a stream"
            raise InputError(f"the file is larger than {MOST_BYTES >> 20} MiB", where=where, hint=hint)
        return resolved

    def folder(self, path: str, where: str) -> str | None:
        """The folder at a path, with links resolved; None if there is none. Raises as `resolve` does for one
        outside of the directories.
        """
        _check_local(path, where)
        resolved = self._resolved(path, where)
        return resolved if os.path.isdir(resolved) else None

    def _resolved(self, path: str, where: str) -> str:
        if self.directories is None:
            return os.path.realpath(path)
        if not self.directories:
            raise RefusedError(self.none, where=where, hint=self.hint)
        resolved = Path(os.path.realpath(path))
        if not any(resolved.is_relative_to(os.path.realpath(directory)) for directory in self.directories):
            raise RefusedError(
                f"the path {path} is outside of the directories in {SETTING}",
                where=where,
                hint="move the file into one of them, or ask the operator of the fleet to add its directory"
                f" to {SETTING}",
            )
        return str(resolved)


def _check_local(path: str, where: str) -> None:
    if "://" in path or path.lower().startswith(("file:", "data:")):
        raise InputError(
            f"{path} is an address, not a path",
            where=where,
            hint="copy the file to the machines of the registry and the joiner",
        )
    if "\0" in path:
        raise InputError("the path contains a NUL character", where=where, hint="name a CSV or Parquet file")


UNRESTRICTED = FileAccess()
NO_ACCESS = FileAccess(())
# For texts of clients that may not apply statements. Tables in service are read all the same.
OF_READERS = FileAccess(
    (),
    "only a client that may apply statements may name files",
    "use the tables and patterns that are in service, or write the values of a pattern",
)

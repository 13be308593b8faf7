"""Which files statements may have read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import RefusedError

SETTING = "TAMIS_TABLES"


@dataclass(frozen=True)
class Reach:
    """The files that tables may name: those in one of some directories, wherever links lead; None: all that
    the process can read.
    """

    directories: tuple[str, ...] | None = None

    @staticmethod
    def of(setting: str) -> Reach:
        """What the setting says: directories, with the system's separator of paths between them.

        >>> Reach.of("")
        Reach(directories=())
        """
        return Reach(tuple(one for one in setting.split(os.pathsep) if one))

    def resolved(self, path: str, where: str) -> str:
        """The file that a path names, without links. Raises RefusedError where it may not be read, in words
        that don't tell whether there is such a file.
        """
        if self.directories is None:
            return path
        if not self.directories:
            raise RefusedError(
                f"tables are not read here: {SETTING} isn't set",
                where=where,
                hint=f"set {SETTING} to the directory of their files, for registry and joiner alike",
            )
        found = Path(os.path.realpath(path))
        if not any(found.is_relative_to(os.path.realpath(one)) for one in self.directories):
            raise RefusedError(
                f"the path {path} leads out of the directories in {SETTING}",
                where=where,
                hint="put the file into one of them, or ask who runs the fleet for its directory",
            )
        return str(found)


ANYWHERE = Reach()
NOWHERE = Reach(())

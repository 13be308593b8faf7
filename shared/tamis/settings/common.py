"""Settings that services share: directory, logs, address of the telemetry server, and directories of tables.

The files of services are private: only their own user can read them, whatever the umask of the shell is.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.errors import InputError
from tamis.settings.secret_files import EnvironmentSettings

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


class ServiceSettings(EnvironmentSettings):
    """Common settings, from `TAMIS_…`."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    data: Path = Path("tamis-data")
    """Directory for the files of the service. A directory that is named here must exist."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important messages that are logged."""
    log_format: Literal["text", "json"] = "text"
    """Lines of text for people, or one JSON object a line."""
    telemetry_host: str = "127.0.0.1"
    """The address of the port with `/metrics`, `/healthz` and `/readyz`."""
    telemetry_port: int = Field(default=0, ge=0, le=65_535)
    """The port for telemetry. 0 takes a free port, which the service logs when it starts."""
    telemetry_hosts: str = ""
    """Host names under which Prometheus and probes reach this port, separated by commas. Addresses,
    `localhost` and the name of the machine are always accepted; requests for other host names are
    refused (421).
    """

    @property
    def telemetry_names(self) -> list[str]:
        """The names of `telemetry_hosts`."""
        return host_names(self.telemetry_hosts)

    def data_directory(self) -> Path:
        """The directory for the service's files, `data`, closed to other users. The default directory is
        created. A directory in TAMIS_DATA must exist: if its disk isn't mounted, a new directory would look
        like a first start.

        Raises InputError if it can't be used.
        """
        named = "data" in self.model_fields_set
        try:
            if not named:
                private_directory(self.data)
            if (fault := _fault(self.data)) is None:
                private_directory(self.data)
        except OSError as error:
            fault = f"the directory can't be made: {error.strerror}"
        if fault is not None:
            raise InputError(
                fault,
                where=f"TAMIS_DATA={self.data}" if named else str(self.data),
                hint="set TAMIS_DATA to a directory that exists and in which this service may write",
            )
        return self.data


def host_names(text: str) -> list[str]:
    """The names of a setting with host names.

    >>> host_names("edge-a.example, edge-a,")
    ['edge-a.example', 'edge-a']
    """
    return [name for part in text.split(",") if (name := part.strip())]


def _fault(path: Path) -> str | None:
    if not path.exists():
        return "there is no such directory"
    if not path.is_dir():
        return "this is no directory"
    return None if os.access(path, os.W_OK | os.X_OK) else "this directory can't be written to"


S = TypeVar("S", bound=BaseSettings)


def load(settings: type[S]) -> S:
    """Read settings from the environment. Raises InputError with the wrong variables, never with values."""
    try:
        return settings()
    except ValidationError as error:
        prefix = settings.model_config.get("env_prefix", "")
        faults = [
            f"{prefix}{'_'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}"
            if fault["loc"]
            else fault["msg"]
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InputError("; ".join(faults), where="environment", hint="correct the named variables") from None


class TableSettings(BaseSettings):
    """`TAMIS_TABLES`: directories, with the system's path separator between them. Everybody who may apply
    statements can read every CSV and Parquet file in them.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    tables: str = ""
    """Directories with the files of [tables](sql.md#files-of-tables-and-patterns), or single files, separated
    by `:`. Without it the registry reads no file, and refuses `CREATE TABLE`.
    """

    @property
    def registry(self) -> FileAccess:
        """The files that statements may name at the registry. The address of a client doesn't count, since
        a proxy or another user of this machine also sends from loopback.
        """
        return FileAccess.from_setting(self.tables)

    @property
    def joiner(self) -> FileAccess:
        """Access to the files that tables in plans name. Without TAMIS_TABLES every file may be read, since
        the registry has checked them.
        """
        return FileAccess.from_setting(self.tables) if self.tables else UNRESTRICTED

"""Settings that all services share: directory, logs, and address of the telemetry server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.errors import InputError
from tamis.settings.private_files import private_directory
from tamis.settings.secret_files import EnvironmentSettings


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

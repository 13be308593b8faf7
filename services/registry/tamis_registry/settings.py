"""Configuration of the registry, from `TAMIS_…`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tamis.settings import ServiceSettings
from tamis.settings.http_security import HttpSettings
from tamis_registry.proving.pool import PROCESSES, SECONDS

DEFAULT_PARTITIONS = 4


class RegistrySettings(ServiceSettings):
    """Settings of the registry alone.

    `partitions` is used only at the fleet's first start. None: the recorded number, or else 4.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    partitions: int | None = Field(default=None, ge=1, le=10_000)
    """Partitions of every joined topic, 4 by default. It counts at the first start of the fleet; a different
    number is refused later. `tamis up` always takes 4.
    """
    registry_host: str = "127.0.0.1"
    """The address on which the registry listens; also `--host`."""
    registry_port: int = Field(default=8181, ge=0, le=65_535)
    """The port on which it listens; also `--port`."""
    registry_hosts: str = ""
    """Host names under which clients reach it, separated by commas. Addresses, `localhost` and the name of
    the machine are always accepted; requests for other host names are refused (421).
    """
    registry_provers: int = Field(default=PROCESSES, ge=1, le=64)
    """Proving processes, of about 250 MB each. The second one starts when it is needed."""
    registry_proof_seconds: int = Field(default=SECONDS, ge=1, le=3600)
    """Seconds of processor time for one text. A text that needs more is refused (422), with the name of the
    query.
    """


class RegistryHttpSettings(HttpSettings):
    """Tokens and TLS of the registry."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_REGISTRY_")

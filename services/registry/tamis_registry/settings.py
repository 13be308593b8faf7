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
    registry_host: str = "127.0.0.1"
    registry_port: int = Field(default=8181, ge=0, le=65_535)
    registry_hosts: str = ""  # names under which it is reached, with commas between
    registry_provers: int = Field(default=PROCESSES, ge=1, le=64)  # processes that read and prove
    registry_proof_seconds: int = Field(default=SECONDS, ge=1, le=3600)  # of processor time, for one text


class RegistryHttpSettings(HttpSettings):
    """Tokens and TLS of the registry."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_REGISTRY_")

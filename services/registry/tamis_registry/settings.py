"""Configuration of the registry, from `TAMIS_…`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tamis.settings import ServiceSettings

DEFAULT_PARTITIONS = 4


class RegistrySettings(ServiceSettings):
    """What only the registry has. `partitions` counts once, at the fleet's first start; None: what is
    recorded, else 4.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    partitions: int | None = Field(default=None, ge=1, le=10_000)
    registry_host: str = "127.0.0.1"
    registry_port: int = Field(default=8181, ge=0, le=65_535)
    registry_hosts: str = ""  # names under which it is reached, with commas between

"""Configuration of the joiner, from `TAMIS_JOINER_…`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class JoinerSettings(BaseSettings):
    """How Spark runs. Without a checkpoint directory it is `joiner` under TAMIS_DATA."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_JOINER_", frozen=True)

    master: str = "local[2]"
    checkpoint: Path | None = None
    # Heap of the driver, and with a local master of all there is but the Python workers.
    memory: str = Field(default="2g", pattern=r"^[1-9][0-9]*[kKmMgGtT]$")
    # Most records a batch takes: 100,000 are about a second's work on two cores.
    batch: int = Field(default=100_000, ge=1)

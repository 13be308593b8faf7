"""What every service has besides Kafka: where it keeps files, how it logs, where its telemetry listens."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.errors import InputError


class ServiceSettings(BaseSettings):
    """Common settings, from `TAMIS_…`."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    data: Path = Path("tamis-data")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    telemetry_host: str = "127.0.0.1"
    telemetry_port: int = Field(default=0, ge=0, le=65_535)  # 0: a free one, logged at start


S = TypeVar("S", bound=BaseSettings)


def load(settings: type[S]) -> S:
    """Read settings from the environment; what is wrong is named by its variable, never with its value."""
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
